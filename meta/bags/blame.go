package bags

import (
	"time"

	"kith/internal/job"
)

// Host names a host of tasks: a site, and of one with several its node.
type Host struct {
	Site job.SiteID
	Node string
}

// Blame is what hosts have made of one bag of late, so that a failure is a host's fault only
// as far as the bag fails less elsewhere: where everything fails, nobody is to blame but the
// bag. It is volatile. The zero value has seen nothing.
//
// What a host is charged for a bag is its failures less those that as many runs elsewhere
// have had; a failure in less than a tenth of the time that runs take elsewhere counts
// double. As more is seen elsewhere this is put right for what is past, with the host's next
// result or before it gets more tasks. While nothing has ended elsewhere, half of all runs
// are thought to fail there.
//
// Source: spec 002 section 2.8 for black holes; that blame is relative is our own.
type Blame struct {
	hosts map[Host]*tally
	all   tally // of them all
}

// tally is what a host has done for a bag.
type tally struct {
	done, failed float64
	seconds      float64 // of those done
	faults       float64 // failures, those that count double twice
	charged      float64
}

const (
	// blameMemory is of how many results of a bag is known how they ended: when there are more,
	// all count half. So a bag whose tasks change is judged anew.
	blameMemory = 256
	// blameHosts bounds the hosts that are known of a bag.
	blameHosts = 4096
	// quickPart is in which part of the usual time a failure counts double.
	quickPart = 10
)

// Result notes how a task ended at a host, which had it for no longer than held, and returns
// how far that was the host's fault. Alone says that it cannot be compared with what others
// have done: no other host could have had the task, or it had failed before. What the host
// says of run is believed up to held.
func (b *Blame) Result(at Host, failed bool, run, held time.Duration, alone bool) Blamed {
	r := Blamed{Failed: failed, Turnaround: held}
	t := b.of(at)
	if t == nil || alone {
		return r
	}
	n := 1.0
	if failed {
		if usual, known := b.usual(t); known && min(run, held).Seconds() < usual/quickPart {
			n = 2
		}
		t.failed++
		t.faults += n
		b.all.failed++
	} else {
		seconds := max(0, min(run, held)).Seconds()
		t.done++
		t.seconds += seconds
		b.all.done++
		b.all.seconds += seconds
		n = 0
	}
	r.Compared, r.Excess = true, min(1, n-b.shareBut(t))
	r.Charge = b.settle(t)
	b.forget()
	return r
}

// Settle returns by how many halvings of its quota a host is to be charged more for a bag than
// it was, or less below 0, after what has been seen elsewhere since.
func (b *Blame) Settle(at Host) float64 {
	if t := b.hosts[at]; t != nil {
		return b.settle(t)
	}
	return 0
}

func (b *Blame) settle(t *tally) float64 {
	due := max(0, t.faults-b.shareBut(t)*(t.done+t.failed))
	more := due - t.charged
	t.charged = due
	return more
}

// shareBut is which share of the runs of other hosts failed.
func (b *Blame) shareBut(t *tally) float64 {
	failed, done := max(0, b.all.failed-t.failed), max(0, b.all.done-t.done)
	return (failed + 1) / (failed + done + 2)
}

// usual is how many seconds runs took that other hosts did well.
func (b *Blame) usual(t *tally) (seconds float64, known bool) {
	if done := b.all.done - t.done; done >= 1 {
		return max(0, b.all.seconds-t.seconds) / done, true
	}
	return 0, false
}

// of returns the tally of a host, nil for one too many.
func (b *Blame) of(at Host) *tally {
	t := b.hosts[at]
	if t == nil && len(b.hosts) < blameHosts {
		if b.hosts == nil {
			b.hosts = make(map[Host]*tally)
		}
		t = &tally{}
		b.hosts[at] = t
	}
	return t
}

// forget lets everything count half if there is too much.
func (b *Blame) forget() {
	if b.all.done+b.all.failed < blameMemory {
		return
	}
	b.all.halve()
	for at, t := range b.hosts {
		if t.halve(); t.done+t.failed < 1.0/blameMemory { // the little that it was stays in the sums
			delete(b.hosts, at)
		}
	}
}

func (t *tally) halve() {
	t.done, t.failed, t.seconds, t.faults, t.charged = t.done/2, t.failed/2, t.seconds/2, t.faults/2, t.charged/2
}

// Forgive returns by how many halvings each host was charged for the bag, and takes it back:
// the fault was the bag's.
func (b *Blame) Forgive() map[Host]float64 {
	charged := make(map[Host]float64)
	for at, t := range b.hosts {
		if t.charged != 0 {
			charged[at] = t.charged
		}
	}
	*b = Blame{}
	return charged
}

// Trust forgets what a host has made of the bag.
func (b *Blame) Trust(at Host) {
	if t := b.hosts[at]; t != nil {
		b.all.done, b.all.failed, b.all.seconds = b.all.done-t.done, b.all.failed-t.failed, b.all.seconds-t.seconds
		delete(b.hosts, at)
	}
}
