package explore

import (
	"encoding/binary"
	"fmt"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/policy"
)

// stepKind says what happens at a site.
type stepKind uint8

const (
	submitJob stepKind = iota
	cancelJob
	askJob
	revokeSite
	receive
	peerUp
	peerDown
	timeout
	report // the executor tells what became of a process
	processEnd
	demotionEnd
	stagingEnd // the input of an attempt is there: its process starts
	startFails // or not, for a reason of the host's
	crash
	machineDown
	restart
)

// blockerJob is the job that keeps the first site busy.
const blockerJob = 9

// step is an event at a site, and how far the site gets before it dies.
type step struct {
	kind    stepKind
	job     int
	peer    int
	msg     int32 // number of message
	message meta.Message
	attempt job.AttemptID
	cut     int // whole, unsynced, or how many effects leave
}

// local is a state of one site.
type local struct {
	// from and by are a shortest known way to get there.
	from *local
	by   step
	id   int32
	site int
	*summary
	next map[stepKey]*transition
}

// summary is what the rest of the world can see of a local state.
type summary struct {
	up      bool
	inbox   bool // the executor has something to report
	wakes   bool
	running []job.AttemptID
	asked   []job.AttemptID // of those, to save and end
	staged  []job.AttemptID
	copies  int
	bag     bagSeen
	revoked uint8 // by bits, the sites that it has revoked
	// jobs are those submitted here, by number in the configuration.
	jobs []jobSeen
}

// jobSeen is what a site says of a job.
type jobSeen struct {
	number  int
	id      job.ID
	state   job.State
	attempt uint32
}

// stepKey names a step at a given local state.
type stepKey struct {
	kind stepKind
	arg  int32 // peer and job, or message
	peer int8
	cut  int8
}

func (s *step) key() stepKey {
	k := stepKey{kind: s.kind, peer: int8(s.peer), cut: int8(s.cut), arg: int32(s.job)}
	switch s.kind {
	case receive:
		k.arg = s.msg
	case processEnd, demotionEnd, stagingEnd, startFails, cancelJob, askJob:
		k.arg = int32(s.attempt.Job.Generation&1)<<16 | int32(s.attempt.Number)<<8 | int32(s.attempt.Job.Seq)<<4 | int32(s.attempt.Job.Origin[1]-'0')
	}
	return k
}

// transition is a local step that was carried out.
type transition struct {
	to       *local
	sends    []sent
	launched []job.AttemptID
	from     []uint64
	demoted  []demotion
	tasks    []meta.TaskRun
	done     []uint32
	ended    []job.AttemptID
	acked    []uint64
	// boundaries is how many places to die at there are.
	boundaries int
	// grants are the attempts that were granted to another site.
	grants []grant
	// visible says that the observer may judge other orders of it and of steps
	// at other sites differently: a job starts or ends.
	visible bool
	broken  string
}

// sent is a message that leaves for a site.
type sent struct {
	to  int
	msg int32
}

type grant struct {
	attempt job.AttemptID
	to      int
}

// sites carries out local steps and remembers them.
type sites struct {
	cfg      *Config
	locals   map[string]*local
	byID     []*local
	messages map[string]int32
	byNumber []meta.Message
	played   int // local steps carried out
	// warm is of each site the node that the latest new state is of: a chain of steps need
	// not begin with its history again.
	warm [maxSites]warmNode
}

func newSites(cfg *Config) *sites {
	if p := cfg.policies(); p.Stated() {
		cfg.compiler = policy.New()
	}
	return &sites{cfg: cfg, locals: make(map[string]*local), messages: make(map[string]int32)}
}

// number returns the number of a message: equal ones have the same.
func (x *sites) number(m meta.Message) int32 {
	key := x.cfg.messageKey(m)
	n, ok := x.messages[key]
	if !ok {
		n = int32(len(x.byNumber))
		x.messages[key] = n
		x.byNumber = append(x.byNumber, m)
	}
	return n
}

// first returns the state of a site that has just begun.
func (x *sites) first(index int) *local { return x.intern(newNode(x.cfg, index), nil, step{}) }

// intern returns the state that a node is in.
func (x *sites) intern(n *node, from *local, by step) *local {
	key := string(n.key())
	l := x.locals[key]
	if l == nil {
		l = &local{from: from, by: by, id: int32(len(x.byID)), site: n.index, summary: n.summary(), next: make(map[stepKey]*transition)}
		x.locals[key] = l
		x.byID = append(x.byID, l)
	}
	return l
}

func (n *node) summary() *summary {
	s := &summary{up: n.up(), running: n.running(), asked: n.asked(), revoked: n.cutOff}
	if !s.up {
		return s
	}
	s.staged = n.staging()
	s.inbox, s.copies = len(n.inbox) > 0, n.state.CopyCount()
	s.wakes = n.engine.NextWake(n.now) != job.Never
	s.bag = n.bagSeen()
	for j := range n.state.Jobs(job.ID{}) {
		var number int
		if _, err := fmt.Sscanf(j.Request.Name, "job-%d", &number); err == nil {
			s.jobs = append(s.jobs, jobSeen{number, j.ID, j.State, j.Attempt})
		}
	}
	return s
}

type warmNode struct {
	in *local
	n  *node
}

// revive plays the history of a local state.
func (x *sites) revive(l *local) *node {
	if w := x.warm[l.site]; w.in == l {
		x.warm[l.site] = warmNode{}
		return w.n
	}
	var history []step
	for at := l; at.from != nil; at = at.from {
		history = append(history, at.by)
	}
	n := newNode(x.cfg, l.site)
	for i := len(history) - 1; i >= 0; i-- {
		n.play(history[i])
	}
	return n
}

// take carries out a step at a local state, or looks it up.
func (x *sites) take(l *local, s step) *transition {
	key := s.key()
	if t := l.next[key]; t != nil {
		return t
	}
	t := x.carryOut(l, s)
	l.next[key] = t
	return t
}

func (x *sites) carryOut(l *local, s step) (t *transition) {
	x.played++
	t = &transition{to: l}
	n := x.revive(l)
	defer func() {
		if p := recover(); p != nil {
			t.broken = fmt.Sprintf("crash: %v", p)
		}
	}()
	n.play(s)
	o := n.out
	t.tasks, t.done = o.tasks, o.done
	t.from, t.demoted = o.from, o.demoted
	t.launched, t.ended, t.acked, t.boundaries, t.broken = o.launched, o.ended, o.acked, o.boundaries, o.broken
	for _, m := range o.sends {
		t.sends = append(t.sends, sent{m.to, x.number(m.message)})
		if v, ok := m.message.(meta.Verdict); ok && v.Granted {
			t.grants = append(t.grants, grant{v.Attempt, m.to})
		}
		if v, ok := m.message.(meta.TaskVerdict); ok {
			for i := range v.Bundles {
				t.grants = append(t.grants, grant{v.Bundles[i].Bundle, m.to})
			}
		}
	}
	known := len(x.byID)
	if t.to = x.intern(n, l, s); len(x.byID) > known {
		x.warm[l.site] = warmNode{t.to, n}
	}
	t.visible = len(t.launched)+len(t.tasks)+len(t.demoted) > 0 || t.to.up && t.to.ended() != l.ended()
	return t
}

// ended counts the jobs and tasks submitted here that have ended.
func (s *summary) ended() int {
	n := s.bag.ended()
	for i := range s.jobs {
		if s.jobs[i].state.Terminal() {
			n++
		}
	}
	return n
}

// attemptCode packs an attempt of a small world.
func attemptCode(b []byte, a job.AttemptID) []byte {
	b = append(b, a.Job.Origin[1]-'0', byte(a.Job.Seq))
	return binary.AppendUvarint(b, uint64(a.Number))
}
