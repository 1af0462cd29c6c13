package mutants

// guardsOfFloods bound what somebody may take: rows 10 and 11.
func guardsOfFloods() []Guard {
	return []Guard{
		{10, "frames-are-paid-for", cut("cmd/kithd/frames/conn.go", "if wait := c.reserve(cost.All, time.Now()); «wait > 0» {"), inFrames, "TestConnWaits"},
		{10, "frames-that-bring-nothing", cut("cmd/kithd/frames/conn.go", "«c.bounds.Idle > 0 && c.idle > c.bounds.Idle»"), inFrames, "TestConnIsClosed"},
		{10, "data-without-a-call", cut("cmd/kithd/frames/follower.go", "case kind == data && length > 0 && ‹!f.uncalled›:"), inFrames, "TestDataWithoutACall"},
		{10, "bytes-one-at-a-time", cut("cmd/kithd/frames/conn.go", "		cost = ⟦Cost{}|idle(smallReadCost)⟧"), inFrames, "TestConnPaysForSmallReads"},
		{10, "floods-before-the-first-call", cut("cmd/kithd/frames/conn.go", "if «c.bounds.First > 0 && !c.called.Load() && c.uncalled.Load() > mostUncalled && !c.over.Swap(true)» {"), inFrames, "TestClosedBeforeTheFirstCall"},
		{10, "floods-wait-to-come-back", cut("cmd/kithd/daemon/framepace.go", "			⟪d.port.pace.owe(address, now, d.port.comebacks.closed(address, now))⟫"), inDaemon, "TestFloodWaitsToComeBack"},
		{10, "refused-messages-cost-more", cut("meta/peer/rates.go", "⟪l.limitsOf(site).charge(refusedCost-1, time.Now())⟫"), inPeer, "TestMessagesThatTheEngineRefusesCostMore"},
		{10, "resets-cost-more", cut("cmd/kithd/frames/follower.go", "return idle(⟦0|resetCost⟧)"), inFrames, "TestFollow"},
		{10, "pace-of-handshakes", cut("cmd/kithd/daemon/port.go", "after, ok := p.pace.wait(host, time.Now(), handshakePatience)\n		switch {\n		case «!ok»:"), inDaemon, "TestHandshakesHaveAPace"},
		{10, "floods-are-dropped", cut("cmd/kithd/daemon/border.go", "⟪b.filter.Shut(host, shutFor)⟫"), inDaemon, "TestFloodedPortIsShut"},
		{10, "handshakes-of-one-address", cut("cmd/kithd/daemon/handshakes.go", "case «len(h.of[address]) >= mostHandshakesOne»:"), inDaemon, "TestHostileHandshakes"},
		{10, "connections-have-places", cut("cmd/kithd/daemon/border.go", "if ‹met == places.None› {"), inDaemon, "TestConnectionsHavePlaces"},
		{10, "slow-requests", cut("cmd/kithd/daemon/border.go", "case «of[in.host] > b.bounds.slowOne»:"), inDaemon, "TestUnfinishedRequestsHoldFewPlaces"},
		{10, "lists-of-headers", cut("cmd/kithd/daemon/server.go", "grpc.MaxHeaderListSize(⟦uint32(16<<20)|maxHeaderList⟧), grpc.ConnectionTimeout"), inDaemon, "TestSiteBoundsWhatStrangersSend"},
		{10, "streams-on-a-connection", cut("cmd/kithd/daemon/server.go", "grpc.MaxConcurrentStreams(⟦uint32(maxStreams)|maxPeerStreams⟧), grpc.ChainStreamInterceptor"), inDaemon, "TestPeerConnectionHasFewStreams"},
		{10, "queries-have-a-rate", cut("meta/peer/receive.go", "if «!s.limits.allows(Queries, now)» {"), inPeer, "TestStartQueriesBeyondTheRateAreToldToAskLater"},
		{10, "bundles-have-a-rate", cut("meta/peer/bundle.go", "if «!s.limits.allows(Bundles, now)» {"), inPeer, "TestBundlesAreDropped"},
		{10, "nothing-is-free", cut("meta/peer/receive.go", "	⟪l.hold(s, s.limits.charge(b.cost(proto.Size(f)), time.Now()), Dealings)⟫"), inPeer, "TestNothingOfAPeerIsFree"},
		{10, "protocol-has-a-rate", cut("meta/peer/rates.go", "	n, wait, of := s.limits.pace(messages, time.Now())\n	⟪l.hold(s, wait, of)⟫"), inPeer, "TestProtocolIsWaitedFor"},
		{10, "streams-have-a-rate", cut("meta/peer/rates.go", "	if ‹wait <= 0› {\n		return nil\n	}\n	l.tellRefusal(Refusal{What: WhatRate"), inPeer, "TestStreamsThatComeAndGo"},
		{10, "subnets-are-one", cut("internal/places/sender.go", "netip.PrefixFrom(ip.WithZone(\"\"), ⟦128|subnetBits⟧)"), inDaemon, "TestSubnetIsOneAddress"},
		{10, "digests-have-a-rate", cut("cluster/gossip/digests.go", "if k.counted = now; «k.spare < 1» {"), inGossip, "TestFloodOfDigests"},
		{10, "lanes-have-a-pace", cut("cluster/gossip/lane.go", "	wait := l.pace.Reserve().Delay()\n	if ‹wait <= 0› {"), inGossip, "TestLanesHaveAPace"},
		{10, "exchanges-at-a-time", cut("cluster/gossip/lane.go", "if e == nil && «len(l.serving) >= maxExchanges» {"), inGossip, "TestThousandRequests"},
		{10, "refusals-that-wait", cut("cluster/gossip/lane.go", "	flooded := «len(l.refusals) >= maxQueuedRefusals»"), inGossip, "TestDeadLanesEnd"},

		{11, "handshakes-end", cut("cmd/kithd/daemon/port.go", "context.WithTimeout(p.ctx, ⟦time.Hour|p.wait⟧)"), inDaemon, "TestHostileSlowHandshake"},
		{11, "connection-without-a-call", cut("cmd/kithd/frames/conn.go", "	if «b.First > 0» {"), inFrames, "TestConnWithoutACall"},
		{11, "peer-that-never-reads", cut("meta/peer/stream.go", "	over := «len(s.queue) > maxQueuedMessages || s.bytes > maxQueuedBytes ||\n		(len(s.queue) > maxStuckMessages && time.Since(s.moved) > s.patience)»"), inPeer, "TestPeerThatNeverReads"},
		{11, "joiners-at-a-time", cut("meta/trust/invite/desk.go", "gate: make(chan struct{}, ⟦1<<20|maxConnections⟧)"), inInvite, "TestSlowJoiners"},
	}
}
