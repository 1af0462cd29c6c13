package explore

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/commit"
	"kith/sitesched"
	"kith/store"
	"kith/store/codec"
	"kith/store/memstore"
)

// board shows every site as large and idle: who gets a copy is not what is
// looked at here.
type board struct{ sites int }

// Refresh implements cluster.Board.
func (b *board) Refresh(now job.Time, peers []*cluster.Peer) {
	for _, p := range peers {
		p.Known, p.SeenAt = true, now
		p.Digest = cluster.Digest{Site: p.Site, Incarnation: 1, Processors: 1, Speed: 1}
	}
}

// node is a site that runs: the engines, the disk below them and the processes
// beside them. It is the third driver of the engines and keeps the rules of
// package meta: effects leave as package meta/commit lets them, and a pass ends
// each instant.
type node struct {
	cfg   *Config
	index int
	now   job.Time
	disk  memstore.Disk
	boots int
	procs map[job.AttemptID]*process
	// shrunk says that it has fewer processors than in the beginning.
	shrunk bool
	// cutOff are the sites that it has revoked, by bits, as is on disk.
	cutOff uint8

	// The daemon; nil engine while it is down.
	engine  *meta.Engine
	state   *store.State
	sched   *sitesched.Scheduler
	backend store.Backend
	barrier *commit.Barrier
	// inbox is what the executor has yet to tell it.
	inbox []meta.Event
	// staged are the attempts that it brings the input of, and the checkpoints that they go on from.
	staged map[job.AttemptID]uint64

	out *outcome // of the step under way
}

// process is a job that runs, or has run.
type process struct {
	task   *meta.TaskRun // nil for a job
	killed bool
	// from is the number of the checkpoint that it goes on from; asked says that it is to save and end.
	from    uint64
	asked   bool
	cause   job.DemotionCause
	outcome *job.Outcome // nil while it runs
}

// outcome is what a local step brings about outside of the site.
type outcome struct {
	sends    []sending
	launched []job.AttemptID // jobs
	from     []uint64        // the checkpoints that they go on from
	demoted  []demotion
	tasks    []meta.TaskRun // started
	done     []uint32       // tasks whose runs came to their ends by themselves
	ended    []job.AttemptID
	acked    []uint64 // tokens of submissions
	// boundaries is how many effects that matter outside there were: as many
	// places to die at, with one more before the facts are on disk.
	boundaries int
	broken     string // what the engine did that it must not
}

// sending is a message that leaves.
type sending struct {
	to      int
	message meta.Message
}

// whole means that a step is not cut short by a crash.
const whole = -2

// unsynced means that the site dies before the facts are on disk.
const unsynced = -1

const startOfTime = job.Time(second)

func newNode(cfg *Config, index int) *node {
	n := &node{cfg: cfg, index: index, now: startOfTime, procs: make(map[job.AttemptID]*process), out: &outcome{}}
	n.boot()
	n.admit()
	return n
}

// processors is how many this site has now.
func (n *node) processors() int32 {
	if n.cfg.Shrink && !n.shrunk || n.cfg.Tasks > 0 && n.index > 0 {
		return 2
	}
	return 1
}

func (n *node) up() bool { return n.engine != nil }

func (n *node) boot() {
	var err error
	if n.backend, err = memstore.Open(&n.disk, siteID(n.index), 1); err != nil {
		panic(err)
	}
	if n.state, err = n.backend.Load(); err != nil {
		n.out.broken = fmt.Sprintf("S5: the disk of %s cannot be read: %v", siteID(n.index), err)
		return
	}
	if n.sched, err = sitesched.New(n.cfg.scheduler(n.processors())); err != nil {
		panic(err)
	}
	if err := commit.BeginLife(n.state, n.backend, store.BeginLife{}); err != nil {
		panic(err)
	}
	m := n.cfg.engine(&board{n.cfg.Sites}, n.processors())
	m.BootID = "boot-" + strconv.Itoa(n.boots)
	if n.engine, err = meta.New(m, n.state, n.sched); err != nil {
		panic(err)
	}
	var peers []job.SiteID
	for i := range n.cfg.Sites {
		if n.cfg.linked(n.index, i) {
			peers = append(peers, siteID(i))
		}
	}
	n.barrier = commit.New(n.state, n.backend, n.launched)
	n.add(n.engine.Restore(n.now, peers), whole)
	n.step(meta.Tick{}, whole)
	n.finish(whole)
}

// feed gives the daemon an event; cut says how many of the effects that matter
// outside leave before it dies.
func (n *node) feed(ev meta.Event, cut int) {
	n.step(ev, cut)
	n.finish(cut)
}

// step feeds an event, unless the daemon is dead already.
func (n *node) step(ev meta.Event, cut int) {
	if n.up() {
		n.add(n.engine.Step(n.now, ev), cut)
	}
}

// add holds effects until their facts are on disk, and carries out those that
// need not wait for it.
func (n *node) add(effects []meta.Effect, cut int) {
	n.release(n.barrier.Add(effects), cut)
}

// finish ends the instant, makes its facts durable and carries out the effects.
func (n *node) finish(cut int) {
	n.step(meta.Pass{}, cut)
	for tries := 0; n.up() && n.engine.NextWake(n.now) <= n.now && tries < 3; tries++ {
		n.step(meta.Tick{}, cut)
		n.step(meta.Pass{}, cut)
	}
	if !n.up() {
		return
	}
	n.check()
	if cut == unsynced {
		n.die()
		return
	}
	ready, _ := n.barrier.Next()
	effects, err := ready.Commit()
	if err != nil {
		panic(err)
	}
	n.barrier.Done()
	n.cutOff = n.revoked()
	n.release(effects, cut)
}

// release carries out effects until the daemon dies.
func (n *node) release(effects []meta.Effect, cut int) {
	for _, f := range effects {
		if !n.matters(f) {
			continue
		}
		if n.out.boundaries == cut {
			n.die()
			return
		}
		n.out.boundaries++
		n.carry(f)
	}
}

// check looks at the engine from the inside: S6, and facts that contradict
// each other.
func (n *node) check() {
	if err := n.sched.Check(); err != nil {
		n.out.broken = fmt.Sprintf("S6: site %s: %v", siteID(n.index), err)
	}
	if err := n.state.Check(); err != nil {
		n.out.broken = fmt.Sprintf("S5: site %s: %v", siteID(n.index), err)
	}
}

// die ends the daemon.
func (n *node) die() {
	if !n.state.Dirty() {
		n.compareDisk()
	}
	n.engine, n.state, n.sched, n.backend, n.barrier, n.inbox, n.staged = nil, nil, nil, nil, nil, nil, nil
}

// compareDisk checks that what the daemon acted on is what its successor will
// find.
func (n *node) compareDisk() {
	found, err := n.backend.Load()
	if err != nil || !bytes.Equal(codec.Dump(found), codec.Dump(n.state)) {
		n.out.broken = fmt.Sprintf("S5: %s dies, and its disk does not hold what it acted on", siteID(n.index))
	}
}

// matters tells effects that can be seen outside of the daemon.
func (n *node) matters(f meta.Effect) bool {
	switch f := f.(type) {
	case meta.Send:
		_, load := f.Message.(meta.LoadDigest)
		return !load
	case meta.Reply:
		return f.Token != 0 && f.Err == nil
	case meta.Grant, meta.GrantTasks, meta.Launch, meta.Kill, meta.AskCheckpoint, meta.Unstage, meta.Adopt, meta.Clear, meta.Fetch, meta.FetchTasks:
		return true
	}
	return false
}

// carry carries out one effect.
func (n *node) carry(f meta.Effect) {
	switch f := f.(type) {
	case meta.Reply:
		n.out.acked = append(n.out.acked, f.Token)
	case meta.Send:
		n.send(f.To, f.Message)
	case meta.Grant:
		n.send(f.To, f.Message(resumePayload(f.Resume)))
	case meta.GrantTasks:
		n.send(f.To, f.Verdict)
	case meta.Launch:
		switch {
		case n.procs[f.Attempt] != nil:
		case f.Task != nil:
			n.startTask(f)
		case n.cfg.Fails > 0, n.cfg.Staging && f.Attempt.Job.Origin != siteID(n.index):
			if n.staged == nil {
				n.staged = make(map[job.AttemptID]uint64)
			}
			n.staged[f.Attempt] = resumedFrom(f)
		default:
			n.start(f.Attempt, resumedFrom(f))
		}
	case meta.Kill:
		if p := n.procs[f.Attempt]; p != nil {
			p.killed = true
		} else {
			delete(n.staged, f.Attempt)
			n.unstarted(f)
		}
	case meta.AskCheckpoint:
		if p := n.procs[f.Attempt]; p != nil && p.outcome == nil && !p.asked {
			p.asked, p.cause = true, f.Cause
		}
	case meta.Unstage:
		if n.stages(f.Attempt) {
			delete(n.staged, f.Attempt)
			n.inbox = append(n.inbox, meta.AttemptMissing{Attempt: f.Attempt})
		}
	case meta.Adopt:
		n.adopt(f)
	case meta.Clear:
		delete(n.procs, f.Attempt)
	case meta.Fetch:
		n.inbox = append(n.inbox, meta.FilesHome{Attempt: f.Attempt})
	case meta.FetchTasks:
		n.inbox = append(n.inbox, meta.TasksHome{Bundle: f.Bundle, Batch: f.Batch})
	}
}

func (n *node) send(to job.SiteID, m meta.Message) {
	for i := range n.cfg.Sites {
		if siteID(i) == to {
			n.out.sends = append(n.out.sends, sending{i, m})
		}
	}
}

// start makes the process of an attempt.
func (n *node) start(a job.AttemptID, from uint64) {
	delete(n.staged, a)
	n.procs[a] = &process{from: from}
	n.out.launched = append(n.out.launched, a)
	n.out.from = append(n.out.from, from)
	n.inbox = append(n.inbox, meta.AttemptStarted{Attempt: a, At: n.now})
}

// launched reports whether an attempt was launched here and has not ended.
func (n *node) launched(a job.AttemptID) bool {
	p := n.procs[a]
	return p != nil && p.outcome == nil || n.stages(a) || n.runsTasksOf(a)
}

// stages reports whether the input of an attempt is being brought.
func (n *node) stages(a job.AttemptID) bool {
	_, staged := n.staged[a]
	return staged
}

// staging lists the attempts that wait for their input, in order.
func (n *node) staging() []job.AttemptID {
	return slices.SortedFunc(maps.Keys(n.staged), job.AttemptID.Compare)
}

func (n *node) unstarted(f meta.Kill) {
	outcome := f.Unstarted(n.now)
	n.procs[f.Attempt] = &process{outcome: &outcome}
	n.inbox = append(n.inbox, meta.AttemptEnded{Attempt: f.Attempt, Outcome: outcome})
}

func (n *node) adopt(f meta.Adopt) {
	p := n.procs[f.Attempt]
	switch {
	case p == nil && f.BootID != "boot-"+strconv.Itoa(n.boots):
		n.inbox = append(n.inbox, meta.AttemptEnded{Attempt: f.Attempt, Outcome: job.Outcome{Kind: job.Loss, End: n.now, Reason: "lost: begun under an earlier boot"}})
	case p == nil:
		n.inbox = append(n.inbox, meta.AttemptMissing{Attempt: f.Attempt})
	case p.outcome != nil:
		n.inbox = append(n.inbox, meta.AttemptEnded{Attempt: f.Attempt, Outcome: *p.outcome})
	default:
		n.inbox = append(n.inbox, meta.AttemptStarted{Attempt: f.Attempt, At: n.now})
	}
}

// exit ends a process by itself, and tells the daemon if there is one; saved says that it has saved
// what it has done, for its job to go on. A start that was not yet reported never is.
func (n *node) exit(a job.AttemptID, saved bool, cut int) {
	p := n.procs[a]
	p.outcome = &job.Outcome{Kind: job.Success, End: n.now}
	switch {
	case p.killed:
		p.outcome = &job.Outcome{Kind: job.Cancel, End: n.now, Reason: "cancelled"}
	case saved:
		n.demote(a, p)
	}
	n.exitTask(p)
	if n.cfg.Output && a.Job.Origin != siteID(n.index) && !p.killed {
		p.outcome.Files, p.outcome.FilesRemain = []byte("output"), true
	}
	n.out.ended = append(n.out.ended, a)
	if !n.up() {
		return
	}
	n.inbox = slices.DeleteFunc(n.inbox, func(ev meta.Event) bool {
		started, is := ev.(meta.AttemptStarted)
		return is && started.Attempt == a
	})
	if n.cfg.Collecting { // the result comes when the output is here; a restart finds the end
		n.inbox = append(n.inbox, meta.AttemptEnded{Attempt: a, Outcome: *p.outcome})
		n.feed(meta.AttemptOver{Attempt: a}, cut)
		return
	}
	n.feed(meta.AttemptEnded{Attempt: a, Outcome: *p.outcome}, cut)
}

// reboot loses all processes.
func (n *node) reboot() {
	n.boots++
	for _, a := range n.running() {
		n.procs[a].outcome = &job.Outcome{Kind: job.Loss, End: n.now, Reason: "lost: the machine was restarted"}
		n.out.ended = append(n.out.ended, a)
	}
}

// running lists the processes that run, in order.
func (n *node) running() []job.AttemptID {
	var list []job.AttemptID
	for a, p := range n.procs {
		if p.outcome == nil {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, job.AttemptID.Compare)
	return list
}

// play carries out a local step.
func (n *node) play(s step) {
	n.out = &outcome{}
	switch s.kind {
	case submitJob:
		if s.job == 0 && n.cfg.Tasks > 0 {
			n.feed(n.cfg.bag(), s.cut)
			return
		}
		r := n.cfg.request(s.job)
		if s.job == blockerJob {
			r.Copies = 1
		}
		n.feed(meta.Submit{Token: uint64(s.job) + 1, Request: r, RequestID: r.Name}, s.cut)
	case cancelJob:
		n.feed(n.cfg.cancel(s.attempt.Job), s.cut)
	case askJob:
		n.feed(meta.CheckpointJob{Job: s.attempt.Job, Actor: "ada"}, s.cut)
	case revokeSite:
		n.feed(meta.RevokeSite{Site: siteID(s.peer), Actor: "ada"}, s.cut)
	case receive:
		n.feed(meta.Receive{From: siteID(s.peer), Message: s.message}, s.cut)
	case peerUp:
		n.step(meta.PeerDown{Site: siteID(s.peer)}, s.cut)
		n.step(meta.PeerUp{Site: siteID(s.peer), Generation: 1}, s.cut)
		n.finish(s.cut)
	case peerDown:
		n.feed(meta.PeerDown{Site: siteID(s.peer)}, s.cut)
	case timeout:
		n.now = max(n.engine.NextWake(n.now), n.now+1)
		n.feed(meta.Tick{}, s.cut)
	case report:
		ev := n.inbox[0]
		n.inbox = slices.Clone(n.inbox[1:])
		n.feed(ev, s.cut)
	case processEnd:
		n.exit(s.attempt, false, s.cut)
	case demotionEnd:
		n.exit(s.attempt, true, s.cut)
	case stagingEnd:
		n.start(s.attempt, n.staged[s.attempt])
	case startFails:
		delete(n.staged, s.attempt)
		n.inbox = append(n.inbox, meta.StartFailed{Attempt: s.attempt, Reason: "no process"})
	case crash:
		n.die()
	case machineDown:
		if n.up() {
			n.die()
		}
		n.reboot()
	case restart:
		n.now += job.Time(time.Microsecond) // no site dies and returns within no time
		n.shrunk = n.cfg.Shrink
		n.boot()
	}
}

// key is the fingerprint of the site.
func (n *node) key() []byte {
	f := n.cfg.fingerprint()
	f.number(uint64(n.index))
	f.number(uint64(n.boots))
	f.value(reflect.ValueOf(n.procs))
	if n.shrunk {
		f.number(1)
	}
	if n.up() {
		f.number(uint64(n.now))
		f.value(reflect.ValueOf(n.inbox))
		f.value(reflect.ValueOf(n.staged))
		f.value(reflect.ValueOf(n.engine))
		return f.b
	}
	f.number(uint64(n.now))
	return append(append(f.b, 0), n.disk.Bytes()...)
}
