package faults

import (
	"math"
	"time"

	"kith/cluster"
	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta"
	"kith/testbed/sim"
)

// lie makes a site send nonsense until a time: messages that are well formed
// and about jobs that exist, or nearly, but have no bearing on what it knows.
func (x *run) lie(f *Fault, until time.Duration) {
	if x.over || x.since() >= until {
		return
	}
	for i := range x.s.Sites {
		if other := x.s.Sites[i].Name; other != f.Site && x.rng.IntN(2) == 0 {
			x.w.Inject(f.Site, other, x.nonsense(f.Site, other))
		}
	}
	x.in(max(f.By, time.Millisecond), func() { x.lie(f, until) })
}

// nonsense makes up a message of a liar to a site.
func (x *run) nonsense(liar, to job.SiteID) meta.Message {
	if len(x.s.Bags) > 0 && x.rng.IntN(2) == 0 {
		return x.taskNonsense(liar, to)
	}
	a := x.anyAttempt(liar, to)
	return x.anyMessage(liar, to, a, -1)
}

// messageKinds is how many messages of [run.anyMessage] liars send who are no enemies,
// allKinds how many it tells apart.
const (
	messageKinds = 20
	allKinds     = messageKinds + 2
)

// anyMessage makes up the n-th message of a liar about an attempt, any if n is negative.
func (x *run) anyMessage(liar, to job.SiteID, a job.AttemptID, n int) meta.Message {
	reason := job.Reason(x.rng.IntN(40))
	now := x.w.Site(to).Clock()
	someTime := now + job.Time(x.rng.Int64N(int64(2*time.Hour))) - job.Time(time.Hour)
	if n < 0 {
		n = x.rng.IntN(messageKinds)
	}
	switch n {
	case 0:
		return meta.PlaceCopy{Attempt: a, Request: x.anyRequest()}
	case 1:
		return meta.CopyAnswer{Attempt: a, Accepted: x.rng.IntN(2) == 0, Reason: reason}
	case 2:
		return meta.Claim{Attempt: a, Stamp: x.anyNumber(), Sent: someTime}
	case 3:
		return meta.Verdict{Attempt: a, Granted: x.rng.IntN(2) == 0, Reason: reason, Winner: to, Lease: time.Duration(x.anyNumber()), Sent: someTime}
	case 4:
		return meta.Withdraw{Attempt: a}
	case 5:
		return meta.WithdrawAck{Attempt: a}
	case 6:
		if a.Number%4 == 1 {
			return meta.Saved{Attempt: a, Sequence: a.Job.Seq % 8, Files: []byte("saved"), FilesRemain: a.Job.Seq%2 == 0, Ran: now.Sub(someTime)}
		}
		return meta.Started{Attempt: a, At: someTime}
	case 7:
		o := job.Outcome{Kind: job.OutcomeKind(1 + x.rng.IntN(5)), ExitCode: int32(x.rng.IntN(256)), Start: someTime, End: now}
		if o.ExitCode%4 == 1 {
			o.Kind, o.Checkpoint, o.Files = job.Demoted, uint64(o.ExitCode), []byte("checkpoint")
		}
		return meta.Result{Attempt: a, Outcome: o}
	case 8:
		if a.Number%4 == 2 {
			return meta.SavedAck{Attempt: a, Sequence: a.Job.Seq % 8}
		}
		return meta.ResultAck{Attempt: a, Accepted: x.rng.IntN(2) == 0}
	case 9:
		if a.Number%4 == 3 {
			return meta.Demote{Attempt: a}
		}
		return meta.Stop{Attempt: a, Stale: a.Number%2 == 0}
	case 10:
		return meta.GiveBack{Attempt: a, Reason: reason}
	case 11:
		n := x.anyNumber()
		return meta.CopySummary{Count: n, Hash: x.anyNumber(), GivenUp: n}
	case 12:
		return meta.DigestRequest{}
	case 13, 14:
		return x.anyDigest(liar, to)
	case 15:
		return meta.LoadDigest{Digest: cluster.Digest{
			Site: liar, Incarnation: 1, Sequence: x.anyNumber(), Processors: int32(x.anyNumber()), Speed: x.anyFloat(),
			Load: job.Load{Work: x.anyFloat(), Procs: x.anyFloat(), Free: int32(x.anyNumber())}, Draining: x.rng.IntN(3) == 0, Time: someTime,
			Settings: uint64(someTime), TimesFreed: uint64(someTime), GuestWalltime: time.Duration(someTime), KeptFree: int32(someTime % 7), //nolint:gosec // Any will do.
		}}
	case 16:
		q := meta.StartQuery{Query: x.anyNumber(), Request: x.anyRequest(), Predict: x.rng.IntN(2) == 0}
		q.Draws = uint16(q.Query >> 2 % 200) //nolint:gosec // Any will do.
		return q
	case 17:
		m := meta.StartAnswer{Query: uint64(x.rng.IntN(40)), Wait: time.Duration(x.anyNumber()), Reason: reason}
		if m.Query%2 == 0 && m.Wait >= 0 { // what else is no forecast stays at the border
			m.Basis = forecast.ByPastWaits
			for i := range m.Waits {
				m.Waits[i] = m.Wait / 2
			}
		}
		return m
	case 18:
		return meta.Renew{Attempt: a, Sent: someTime}
	case 20:
		return x.anyBundle(liar, to)
	case 21:
		return meta.BundleTaken{Sequence: x.anyNumber()}
	default:
		return meta.Renewed{Attempt: a, Sent: someTime, Lease: time.Duration(x.anyNumber())}
	}
}

// anyAttempt names an attempt of a job that exists or could.
func (x *run) anyAttempt(liar, to job.SiteID) job.AttemptID {
	var id job.ID
	if len(x.jobs) > 0 {
		id = x.ids[x.jobs[x.rng.IntN(len(x.jobs))].Number]
	}
	if id.IsZero() || x.rng.IntN(8) == 0 {
		id = job.ID{Origin: []job.SiteID{liar, to, "nowhere"}[x.rng.IntN(3)], Generation: 1, Seq: 1 + uint64(x.rng.IntN(50))}
	}
	number := uint32(1)
	if s := x.w.Site(id.Origin); s != nil && s.Up() {
		if j := s.State().Job(id); j != nil {
			number = j.Attempt
		}
	}
	switch x.rng.IntN(8) {
	case 0:
		number++
	case 1:
		number--
	case 2:
		number = math.MaxUint32
	case 3:
		number = 1
	}
	return job.AttemptID{Job: id, Number: number}
}

func (x *run) anyDigest(liar, to job.SiteID) meta.Message {
	d := meta.CopyDigest{Stamp: x.anyNumber()}
	for range x.rng.IntN(5) {
		d.Entries = append(d.Entries, meta.DigestEntry{
			Attempt: x.anyAttempt(liar, to), Begun: x.rng.IntN(2) == 0, Ended: x.rng.IntN(3) == 0, Started: job.Time(x.rng.IntN(2)) * sim.Start,
		})
	}
	if x.rng.IntN(3) == 0 {
		d.After, d.Through = x.anyAttempt(liar, to).Job, x.anyAttempt(liar, to).Job
	}
	return d
}

func (x *run) anyRequest() job.Request {
	return job.Request{
		User: "nobody", Processors: int32(x.rng.IntN(5)), Copies: int32(x.rng.IntN(5)), Walltime: time.Duration(x.rng.IntN(200)) * time.Second,
		OnSiteLost: job.OnSiteLost(x.rng.IntN(3)),
	}
}

// anyNumber draws numbers of all sizes.
func (x *run) anyNumber() uint64 { return x.rng.Uint64() >> x.rng.IntN(64) }

func (x *run) anyFloat() float64 {
	switch x.rng.IntN(6) {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1)
	case 2:
		return -1
	}
	return x.rng.Float64() * 1000
}
