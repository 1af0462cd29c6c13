package meta

// Events returns one event of each kind, and Messages one message of each: what a recording
// of an engine's inputs can be made of (package meta/flight).
func Events() []Event {
	return []Event{
		AdmitSite{}, AttemptEnded{}, AttemptMissing{}, AttemptOver{}, AttemptStarted{}, Cancel{}, CancelBag{}, CheckpointJob{}, CloseInvitation{}, ComeByInvitation{}, DiskSeen{}, EstimateTold{},
		FilesHere{}, FilesHome{}, FilesWait{}, ForecastJob{}, Foreseen{}, ForgetSite{}, ForgetTrust{}, Hold{}, HoldBag{}, Leave{}, LoadSeen{}, MachineSeen{}, MakeToken{},
		OpenInvitation{}, OwnerSeen{}, Pass{}, PeerDown{}, PeerUp{}, Receive{}, Reconfigure{}, Release{}, ReleaseBag{}, RetryTasks{}, RevokeSite{}, SavedCopied{}, SavedHome{},
		RevokeToken{}, SendCopies{}, SetAddresses{}, SetBudget{}, SetBundleSequence{}, SetDrain{}, SetPolicies{}, StartFailed{}, Stopping{}, Submit{}, SubmitBag{},
		TasksHome{}, Tick{}, TrustHost{}, TryInvitation{}, TurnCame{},
	}
}

// Messages returns one message of each kind.
func Messages() []Message {
	return []Message{
		BundleTaken{}, Claim{}, CopyAnswer{}, CopyDigest{}, CopySummary{}, Demote{}, DigestRequest{}, GiveBack{}, LoadDigest{}, Offer{}, PlaceCopy{}, Recall{},
		Renew{}, Renewed{}, Result{}, ResultAck{}, Saved{}, SavedAck{}, SiteBundle{}, StartAnswer{}, StartQuery{}, Started{}, Stop{}, StopTasks{}, TaskClaim{}, TaskResults{},
		TaskResultsAck{}, TaskVerdict{}, Verdict{}, Withdraw{}, WithdrawAck{},
	}
}

// Thawed makes what cannot be written down of an engine after all else was read into it
// (package internal/frozen): the stages of placement, and the programs of bags' policies.
func (e *Engine) Thawed() {
	e.origin.policy = e.cfg.Placement.Policy()
	e.origin.policy.Kept = e.cfg.Limits.DecisionSites
	for _, o := range e.bags.open {
		e.bags.thaw(o)
	}
}

// thaw compiles the policies of a bag again, if they were. What they read of the bag is in
// its scope as it was.
func (bo *bagOrigin) thaw(o *openBag) {
	o.judge, bo.works[o.at].Judge = nil, nil
	if o.unread || o.scope == nil {
		return
	}
	judge, err := bo.compile(&o.rec.Policies)
	if err != nil {
		judge = refused{err}
	}
	o.judge, bo.works[o.at].Judge = judge, judge
}
