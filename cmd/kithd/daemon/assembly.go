package daemon

import (
	"fmt"
	"time"

	"kith/cluster"
	"kith/cmd/kithd/metrics"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/commit"
	"kith/meta/peer"
	"kith/meta/policy"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched"
	"kith/sitesched/runner"
	"kith/store"
	"kith/store/blobstore"
)

// assemble makes all parts and connects them; nothing runs yet but idle workers.
func (d *Daemon) assemble() error {
	site, err := d.host.Site()
	if err != nil {
		return err
	}
	if own, is := site.(interface{ Config() sitesched.Config }); is {
		d.plan = own.Config()
	}
	streams := newStreams()
	d.disk = runner.NewRoom(d.cfg.Data)
	d.low = &lowRoom{check: func() error { return d.disk.Check(0, d.cfg.Files.KeepFreeBytes) }, now: time.Now}
	in := newInbox(d.state.Site().Latest, d.low.room, d.log)
	in.clock.warn(d.state.Site().Latest, d.log)
	if d.room, err = openRoom(d.cfg.Data, d.cfg.Files.ReserveBytes, d.backend, in.trouble, d.log); err != nil {
		return err
	}
	if err := beginLife(d.state, d.backend); err != nil {
		return fmt.Errorf("data folder %s: %w", d.cfg.Data, err)
	}
	d.self = d.state.Site()
	if err := d.openFiles(in); err != nil {
		return err
	}
	d.pace = newFramePace(d.cfg.Rates.Frames, d.metFrames)
	links := peer.Config{
		Site: d.siteID(), Generation: d.self.Generation, Folder: d.self.Folder, Incarnation: d.self.Incarnation, Version: Version(),
		Admit: d.admits, Heartbeat: d.cfg.Timing.Heartbeat, DialOptions: dialOptions(), Logger: d.log,
		Payload: func(g meta.Grant) ([]byte, error) { return d.effects.payload(g) },
		Bundle:  func(bundle job.AttemptID, tasks *job.TaskSet) ([]byte, error) { return d.effects.bundle(bundle, tasks) },
		Refused: d.refusedOfPeer, Rates: ratesOf(d.cfg.Rates),
		NoSaves: d.cfg.Members.Self != "", // see apart.Driver.CopySaved
	}
	if d.identity != nil {
		links.Proven, links.Proves, links.Credentials, links.ReadBundle = provenSite, d.proves, d.siteCredentials, d.readBundle
	}
	d.links = peer.New(links, handler{in, streams, d.files, new(turns), &aheadLines{log: d.log, refused: d.refusedOfWork}, d.log, d.tellBundle}, d.files)
	d.runs, err = runner.New(runner.Config{
		Files: d.files, System: d.host.System, Peers: d.links, Away: streams.away, Tell: in.tell, Post: in.post,
		SinceBoot: in.clock.sinceBoot,
		Grace:     d.cfg.Executor.Grace, Staging: d.cfg.Timing.Staging, Fetch: transfer.FetchConfig{Patience: fetchPatience}, Log: d.log,
	})
	if err != nil {
		return err
	}
	if err := checkHost(site, d.runs); err != nil {
		return err
	}
	d.tries = d.runs
	if l := d.options.lead; l != nil && l.machine != nil {
		d.driver = d.newDriver(l, in)
		d.tries = d.driver
	}
	d.foresight = make(chan meta.Foresee, 1)
	if d.engine, err = meta.New(d.engineConfig(), d.state, site); err != nil {
		return err
	}
	if err := d.engine.Recall(store.AllPast(d.backend)); err != nil {
		return err
	}
	spread, err := d.startGossip(in, streams)
	if err != nil {
		return err
	}
	d.effects = &effects{
		links: d.links, runs: d.runs, tries: d.tries, backend: d.backend, log: d.log, changes: api.NewChanges(d.self.Incarnation), bags: api.NewChanges(d.self.Incarnation), streams: streams, spread: spread, audit: d.audit, site: d,
	}
	barrier := commit.New(d.state, d.backend, d.tries.Launched)
	d.loop = newLoop(in, d.engine, barrier, d.effects.carry)
	if d.options.lead != nil {
		in.ended = errLeadOver
	}
	d.recordFlight(site)
	if d.cfg.Owner.Sharing {
		d.owner = d.watchOwner(d.tries.AdoptedShims)
	}
	ac := api.Config{
		Node: node{d.loop, d.backend, d}, Files: d.files, Output: d.runs, Changes: d.effects.changes, BagChanges: d.effects.bags, User: userName(), Backup: d.backUp, Logger: d.log,
	}
	if d.identity != nil {
		d.desk = d.openDesk()
		ac.Trust, d.identity.endpoint.JoinOpen = d.desk, d.desk.desk.IsOpen
	}
	if l := d.options.lead; l != nil {
		if d.driver != nil {
			l.members.machine = d.driver.Machine
		}
		ac.Members = l.members
	}
	users := api.New(ac)
	if d.figuresAt != nil {
		d.figures = metrics.Server(users, d.flightFigures()...)
	}
	d.door = newDoor(d.cfg.Listen.AllowOwnUID, d.options.Tokens, d.border, d.refusedToken)
	d.server, d.health = newServer(users, d.door, newUserRates(d.cfg.Rates.User, d.refusedRate), d.pace, d.log)
	if d.identity == nil {
		kithv1.RegisterPeerServiceServer(d.server, d.links)
		kithv1.RegisterGossipServiceServer(d.server, d.lanes)
		return nil
	}
	d.peerside = newPeerServer(d.links, d.border, d.pace, d.log)
	d.port = newPort(d.listener, d.identity.endpoint.ServerTLS(), newHandshakePace(d.cfg.Rates.Handshakes), d.refusedHandshake, d.metAtPort)
	d.port.shut, d.port.gossip, d.port.join = d.border.shut, d.acceptLane, d.desk.serve
	return nil
}

func (d *Daemon) engineConfig() meta.Config {
	mc, sc := d.cfg.MetaConfig(), d.cfg.SchedulerConfig()
	mc.Policies = policy.New()
	mc.BootID, mc.Admitted = d.tries.BootID(), d.identity != nil
	mc.Self = meta.Self{
		Address: d.advertised(), Processors: sc.Processors, MemoryBytes: sc.MemoryBytes, KeptFree: sc.KeepFree, HomeJobs: cluster.HomeJobsOf(sc.HomeFirst()),
		Policy: sc.Policy(), Speed: d.cfg.Scheduler.Speed, Version: Version(),
	}
	return mc
}

func (d *Daemon) openFiles(in *inbox) (err error) {
	var copies blobstore.Copies
	if l := d.options.lead; l != nil {
		copies = l.copies
	}
	d.files, err = runner.OpenFiles(runner.FilesConfig{
		Site: d.siteID(), Dir: d.cfg.Data, Backend: d.backend, Copies: copies, InputRoots: d.cfg.Files.InputRoots,
		QuotaBytes: d.cfg.Files.QuotaBytes, KeepFreeBytes: d.cfg.Files.KeepFreeBytes, MaxFileBytes: d.cfg.Files.MaxFileBytes, MaxCheckpointBytes: d.cfg.Checkpoint.MaxBytes,
		Look: in.Look, Log: d.log, Refused: d.refusedOfWork, Live: d.liveElsewhere(),
	})
	return err
}
