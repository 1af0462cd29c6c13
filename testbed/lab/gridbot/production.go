package gridbot

import (
	"math"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/meta/policy"
	"kith/sitesched"
	"kith/store"
	"kith/testbed/sim"
)

// production dispatches with the engine of kithd: it is the origin of the bags, and each host
// a site of one processor that the floor plays. A host speaks the protocol of hosts and does
// nothing else; a stop takes effect at once, as it does over a stream.
type production struct {
	f     *floor
	w     *sim.World
	hosts map[job.SiteID]*member
	ids   []job.ID // of bags
	bags  map[job.ID]int
	shape bags.Shape
	looks int // at policies, since an ask was answered
}

// member is a host as the origin knows it.
type member struct {
	site   job.SiteID
	stamp  uint64
	client *client // that runs there, nil for none
	// offered is how many tasks the origin has told it of: without any it does not ask.
	offered int
	asked   uint64 // the stamp of its latest ask, 0 if that was answered
	batch   map[job.AttemptID]ended
}

// ended is a run whose result is on its way to be recorded.
type ended struct {
	run    run
	failed bool
	grid   *grid
}

const (
	server = job.SiteID("server")
	never  = 10 * 366 * 24 * time.Hour
	// walltime of a task is above every deadline.
	walltime = 30 * 24 * time.Hour
	// most bounds how often a task may fail.
	mostRetries = store.MaxRetries
)

// newProduction returns a world with the origin, and its dispatcher.
func newProduction() (*production, error) {
	p := &production{hosts: make(map[job.SiteID]*member), bags: make(map[job.ID]int)}
	m := meta.Default()
	m.Placement.MaxLoadAge = math.MaxInt64
	m.Limits.ClosedFor, m.Limits.DecisionSites = never, 1
	m.Policies = counted{policy.New(), &p.looks}
	t := &m.Timing
	// Hosts that play none of it need not be asked what they hold. Stocks that were not heard of
	// in five polls are forgotten.
	t.Load, t.Retry, t.Resend, t.AntiEntropy = never, 10*time.Minute, 10*time.Minute, 5*poll
	var err error
	p.w, err = sim.New(sim.Config{
		Sites:   []sim.SiteConfig{{ID: server, Meta: m, Scheduler: sitesched.Config{Processors: 1, Backfill: sitesched.EASY}}},
		Outside: p.hear,
	})
	return p, err
}

// submit implements [dispatcher].
func (p *production) submit(number int, b *bag) error {
	var refused error
	r := job.Request{Name: b.name, User: "owner", Processors: 1, Walltime: walltime, OnSiteLost: job.Race}
	p.shape = bags.ShapeOf(&r)
	texts := b.policies
	// The origin is a server and runs none of the tasks.
	texts.Texts[bags.Sites] = "!site.home"
	p.w.SubmitBag(p.w.Now(), server, sim.BagSubmission{
		Request: r, Indices: job.FirstIndices(b.tasks), Retries: mostRetries, MaxReplicas: b.replicas, TailAt: b.tailAt,
		Priority: b.priority, Policies: texts, RunTime: func(uint32) time.Duration { return walltime },
		Done: func(id job.ID, err error) {
			if err != nil {
				refused = err
				return
			}
			for len(p.ids) <= number {
				p.ids = append(p.ids, job.ID{})
			}
			p.ids[number], p.bags[id] = id, number
			p.f.after(ownerLooks, func() { p.look(number) })
		},
	})
	return refused
}

// member returns a host, which the origin meets when its first client comes up.
func (p *production) member(h *host) *member {
	m := p.hosts[h.site]
	if m == nil {
		m = &member{site: h.site, batch: make(map[job.AttemptID]ended)}
		p.hosts[h.site] = m
		p.w.Meet(server, meta.PeerUp{Site: h.site, Generation: 1, Incarnation: 1})
		p.w.Hear(server, h.site, meta.LoadDigest{Digest: cluster.Digest{
			Site: h.site, Incarnation: 1, Sequence: 1, Processors: 1, Speed: 1, Load: job.Load{Free: 1},
		}})
	}
	return m
}

// ask implements [dispatcher].
func (p *production) ask(c *client) {
	m := p.member(c.host)
	m.client = c
	if m.offered == 0 {
		return
	}
	m.stamp++
	m.asked = m.stamp
	p.w.Hear(server, m.site, meta.TaskClaim{Stamp: m.stamp, Sent: p.w.Now(), Ask: bags.Ask{Shape: p.shape, Places: 1, Want: max(1, p.f.want)}})
}

// gone implements [dispatcher]: the origin does not learn of it.
func (p *production) gone(c *client, _ *run) {
	if m := p.hosts[c.host.site]; m != nil && m.client == c {
		m.client = nil
	}
}

// ended implements [dispatcher].
func (p *production) ended(c *client, r run, failed bool) {
	kind := job.Success
	if failed {
		kind = job.Failure
	}
	p.tell(c, r, kind)
}

func (p *production) tell(c *client, r run, kind job.OutcomeKind) {
	m := p.hosts[c.host.site]
	m.batch[r.name] = ended{r, kind != job.Success, c.host.grid}
	result := job.TaskResult{Ordinal: r.task, Kind: kind, Start: max(1, r.began), Run: p.w.Now().Sub(r.began)}
	if kind == job.Failure {
		result.ExitCode = 1
	}
	p.w.Hear(server, m.site, meta.TaskResults{Bundle: r.name, Batch: 1, Results: []job.TaskResult{result}})
}

// hear is what a host does with what the origin says.
func (p *production) hear(_, to job.SiteID, message meta.Message) {
	m := p.hosts[to]
	if p.f.cut {
		return
	}
	switch x := message.(type) {
	case meta.Offer:
		m.offered = x.Tasks
	case meta.TaskVerdict:
		p.granted(m, &x)
	case meta.TaskResultsAck:
		p.recorded(m, &x)
	case meta.StopTasks:
		if c := m.client; c != nil {
			for i := range c.runs {
				if r := c.runs[i]; r.name == x.Bundle && (x.Tasks == nil || x.Tasks.Has(r.task)) {
					p.tell(c, r, job.Cancel)
					p.f.stop(c, r.name, r.task)
					return
				}
			}
		}
	}
}

// granted begins what a client was given. What comes for one that has vanished is lost.
func (p *production) granted(m *member, v *meta.TaskVerdict) {
	looks := p.looks
	p.looks = 0
	if m.client == nil || v.Stamp != m.asked {
		return
	}
	m.asked = 0
	tasks := 0
	for i := range v.Bundles {
		b := &v.Bundles[i]
		number, is := p.bags[b.Bundle.Job]
		if !is {
			continue
		}
		replica := p.w.Site(server).State().TaskBundle(b.Bundle).Replica
		tasks += b.Tasks.Count()
		for task := range b.Tasks.All {
			p.f.give(m.client, run{bag: number, task: task, replica: replica, name: b.Bundle})
		}
	}
	p.f.served(tasks, looks)
}

// recorded takes up that the origin has a result.
func (p *production) recorded(m *member, ack *meta.TaskResultsAck) {
	e, is := m.batch[ack.Bundle]
	if !is {
		return
	}
	delete(m.batch, ack.Bundle)
	b := p.w.Site(server).State().Bag(ack.Bundle.Job)
	switch {
	case e.failed:
	case b.Done.Has(e.run.task) && !ack.Unknown:
		p.f.accept(e.run.bag, e.run.task, e.grid)
	default:
		p.f.waste(e.run.bag)
	}
}

// ownerLooks is how often the owner of a bag looks at it.
const ownerLooks = 5 * time.Minute

// look is what the owner of a bag does about it: he releases it if it is held because its first
// results were all failures, and has tasks run again that failed too often. He knows that his
// tasks are well.
func (p *production) look(number int) {
	b, o := p.w.Site(server).State().Bag(p.ids[number]), &p.f.outcome.bags[number]
	if b.State == job.BagOnHold {
		o.held = true
		p.w.Ask(server, func(token uint64) meta.Event { return meta.ReleaseBag{Token: token, Bag: b.ID} }, func(meta.Reply) {})
	}
	if failed := b.Failed.Clone(); !failed.Empty() {
		o.retried += failed.Count()
		p.w.Ask(server, func(token uint64) meta.Event { return meta.RetryTasks{Token: token, Bag: b.ID, Tasks: failed} }, func(meta.Reply) {})
	}
	if b.State != job.BagCompleted {
		p.f.after(ownerLooks, func() { p.look(number) })
	}
}

// counted counts how often policies are looked at for asks.
type counted struct {
	bags.Policies
	looks *int
}

// Compile implements [bags.Policies].
func (c counted) Compile(texts *store.BagPolicies) (bags.Judge, error) {
	j, err := c.Policies.Compile(texts)
	if err != nil {
		return nil, err
	}
	return &countedJudge{j, c.looks}, nil
}

type countedJudge struct {
	bags.Judge
	looks *int
}

// Verdict implements [bags.Judge].
func (j *countedJudge) Verdict(s *bags.Scene) bags.Verdict {
	*j.looks++
	return j.Judge.Verdict(s)
}
