package chaos

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// A Kind is what a fault does.
type Kind string

// The kinds.
const (
	KillDaemon    Kind = "kill-daemon"    // SIGKILL; started again after a while
	FreezeDaemon  Kind = "freeze-daemon"  // SIGSTOP, and later SIGCONT
	RestartDaemon Kind = "restart-daemon" // stopped in order and started again
	KillAll       Kind = "kill-all"       // every kithd at once
	KillShim      Kind = "kill-shim"      // the parent of a running job
	FreezeShim    Kind = "freeze-shim"    // SIGSTOP, and later SIGCONT
	CutLink       Kind = "cut-link"       // between two sites, both ways: nothing passes
	ResetLink     Kind = "reset-link"     // between two sites: connections end and are refused
	CutOneWay     Kind = "cut-one-way"    // from one site to another
	FlapLink      Kind = "flap-link"      // between two sites, cut and healed over and over
	CutSite       Kind = "cut-site"       // between a site and all others
	CutAll        Kind = "cut-all"        // between all sites
	SlowLink      Kind = "slow-link"      // delay, jitter and few bytes a second
	FullDisk      Kind = "full-disk"      // of a site's data
	DrainSite     Kind = "drain"          // by its operator, and resumed
	HoldJobs      Kind = "hold"           // some that wait, and released
	Reconfigure   Kind = "reconfigure"    // restarted with fewer processors, another K and low limits, and later as before
	FewFiles      Kind = "few-files"      // next to no descriptors for the daemon
	HideShim      Kind = "hide-shim"      // the program of the shims is missing, at all sites that share it
	HogDisk       Kind = "hog-disk"       // a job fills the disk, and is cancelled
	HungDisk      Kind = "hung-disk"      // of a site's data: what writes waits
	RotateLeaf    Kind = "rotate-leaf"    // a new certificate at once; those of before are void
	RotateCA      Kind = "rotate-ca"      // a new CA, and the old one dropped when the others have confirmed it
	RevokeSite    Kind = "revoke"         // a site trusts another one no more, and invites it again, or is invited
	ForgetSite    Kind = "forget"         // a site gives another one up that it cannot reach, which comes back
	UseToken      Kind = "token"          // of a user, made, used, revoked and tried again
	Upgrade       Kind = "upgrade"        // stopped in order and started as this version
)

// deck holds every kind as often as it comes up in relation to the others, but
// for upgrades, which come once a site, and HungDisk, which must be asked for: the file
// system that can hang is slower than others. Cards are drawn until none is left, so
// that a short run, too, has a bit of everything.
var deck = []Kind{
	KillDaemon, KillDaemon, KillDaemon, FreezeDaemon, FreezeDaemon, RestartDaemon, KillAll, KillShim, KillShim, FreezeShim,
	CutLink, CutLink, ResetLink, CutOneWay, CutOneWay, FlapLink, CutSite, CutSite, CutAll, SlowLink, FullDisk,
	DrainSite, HoldJobs, Reconfigure, HideShim, HogDisk, FewFiles, RotateLeaf, RotateCA, RevokeSite, ForgetSite, UseToken,
}

// Kinds returns all kinds in the order of their declaration.
func Kinds() []Kind {
	return []Kind{
		KillDaemon, FreezeDaemon, RestartDaemon, KillAll, KillShim, FreezeShim, CutLink, ResetLink, CutOneWay, FlapLink,
		CutSite, CutAll, SlowLink, FullDisk, DrainSite, HoldJobs, Reconfigure, FewFiles, HideShim, HogDisk, HungDisk, RotateLeaf, RotateCA,
		RevokeSite, ForgetSite, UseToken, Upgrade,
	}
}

// A Fault is one thing that is done to the sites.
type Fault struct {
	Kind Kind
	// At is when, since the beginning of its round, For how long it lasts.
	At, For time.Duration
	// Site is the one that it meets, as an index; Other is the other end of a link.
	Site, Other int
	// Pick chooses among what is there when the fault comes, for example a job.
	Pick uint64
}

// planner makes the faults of a run, round by round.
type planner struct {
	rng   *rand.Rand
	sites int
	disk  int // the site whose disk can be full; -1 for none
	kinds []Kind
	left  []Kind
}

func newPlanner(opt *Options, disk int) *planner {
	p := &planner{rng: rand.New(rand.NewPCG(opt.Seed, 1)), sites: opt.Sites, disk: disk}
	cards := deck
	if opt.wants(HungDisk) {
		cards = append(slices.Clone(deck), HungDisk)
	}
	for _, k := range cards {
		wanted := len(opt.Kinds) == 0 || slices.Contains(opt.Kinds, string(k))
		if wanted && (!k.fillsDisk() || disk >= 0) && (!k.trusts() || !opt.Insecure) {
			p.kinds = append(p.kinds, k)
		}
	}
	return p
}

// draws reports whether a kind may come up.
func (p *planner) draws(k Kind) bool { return slices.Contains(p.kinds, k) }

// How faults follow each other in a round.
const (
	meanGap  = 800 * time.Millisecond
	settleIn = 300 * time.Millisecond // between two faults of the same site or link
	shortest = 300 * time.Millisecond
	longest  = 20 * time.Second
)

// round returns faults that begin within a time and end soon after it, in the
// order of their beginnings.
func (p *planner) round(length time.Duration) []Fault {
	var faults []Fault
	if len(p.kinds) == 0 {
		return nil
	}
	free := make(map[string]time.Duration) // when what faults need is free again
	for at := p.gap(); at < length; at += p.gap() {
		f := Fault{Kind: p.draw(), At: at, Pick: p.rng.Uint64()}
		f.For = min(p.lasting(f.Kind), max(length-at, min(length, 2*(lease+leaseMargin))))
		if p.aim(&f, free) {
			faults = append(faults, f)
		} else {
			p.left = append(p.left, f.Kind) // later
		}
	}
	return faults
}

// aim chooses which site a fault meets: one that no other fault meets then.
func (p *planner) aim(f *Fault, free map[string]time.Duration) bool {
	const tries = 12
	for range tries {
		if f.Site = p.rng.IntN(p.sites); f.Kind.fillsDisk() {
			f.Site = p.disk
		} else if f.Kind == HungDisk {
			f.Site = hangingSite(p.sites)
		}
		f.Other = (f.Site + 1 + p.rng.IntN(p.sites-1)) % p.sites
		needs := f.needs(p.sites)
		if slices.ContainsFunc(needs, func(name string) bool { return free[name] > f.At }) {
			continue
		}
		for _, name := range needs {
			free[name] = f.At + f.For + settleIn
		}
		return true
	}
	return false
}

// briefly is how long a daemon may be down beside a frozen shim.
const briefly = time.Second

// needs names what a fault must have for itself. Faults of one site meet as they
// like, a daemon that is killed while it is frozen, a shim that is killed while
// the daemon is down, a disk that is full meanwhile, but for those that would
// undo each other or prove nothing together:
//
//   - A daemon is ended and started again by one fault at a time. One that is
//     frozen cannot be stopped in order.
//   - A daemon, or a shim, is frozen by one fault at a time: the end of the first
//     would end the second.
//   - A daemon that is frozen, or down for longer than briefly, and a frozen shim:
//     nothing is left to end the job with its lease; docs/reliability.md says so.
//     Where that is so for a moment all the same, the checker allows for it.
func (f *Fault) needs(sites int) []string {
	var names []string
	down := func(i int) {
		names = append(names, daemonLock(i))
		if f.For > briefly {
			names = append(names, guardLock(i))
		}
	}
	switch f.Kind {
	case KillDaemon:
		down(f.Site)
	case RestartDaemon, Upgrade:
		down(f.Site)
		names = append(names, frozenLock(f.Site))
	case FreezeDaemon:
		names = append(names, frozenLock(f.Site), guardLock(f.Site))
	case KillShim: // whatever else happens
	case FreezeShim:
		names = append(names, shimLock(f.Site), guardLock(f.Site))
	case DrainSite:
		names = append(names, drainLock(f.Site))
	case HoldJobs: // whatever else happens
	case FewFiles:
		names = append(names, filesLock(f.Site))
	case HideShim:
		names = append(names, "program of the shims")
	case HungDisk: // nothing can end the daemon then, and it does as little as a frozen one
		names = append(names, daemonLock(f.Site), frozenLock(f.Site), guardLock(f.Site), diskLock(f.Site))
	case Reconfigure:
		names = append(names, daemonLock(f.Site), frozenLock(f.Site), guardLock(f.Site))
	case HogDisk:
		names = append(names, diskLock(f.Site))
	case FullDisk:
		names = append(names, diskLock(f.Site))
		if f.killsToo() {
			names = append(names, daemonLock(f.Site), guardLock(f.Site))
		}
	case KillAll:
		for i := range sites {
			down(i)
		}
	case RotateLeaf, RotateCA, UseToken:
		names = append(names, keysLock(f.Site, f.Kind))
	case CutLink, ResetLink, CutOneWay, FlapLink, SlowLink, RevokeSite, ForgetSite:
		names = append(names, linkLock(f.Site, f.Other))
	case CutSite:
		for i := range sites {
			if i != f.Site {
				names = append(names, linkLock(f.Site, i))
			}
		}
	case CutAll:
		for i := range sites {
			for k := range i {
				names = append(names, linkLock(i, k))
			}
		}
	}
	return names
}

// fillsDisk reports whether a fault is for the site with a small disk.
func (k Kind) fillsDisk() bool { return k == FullDisk || k == HogDisk }

// hangingSite is the site whose disk can hang: another one than that with the small disk.
func hangingSite(sites int) int { return max(0, sites-2) }

// killsToo reports whether the daemon is killed while its disk is full, and
// finds it so when it comes back.
func (f *Fault) killsToo() bool { return f.Pick%2 == 0 }

func sortFaults(faults []Fault) {
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
}

// upgrades returns one upgrade for each site, spread over a round.
func (p *planner) upgrades(length time.Duration) []Fault {
	faults := make([]Fault, p.sites)
	for i, s := range p.rng.Perm(p.sites) {
		faults[i] = Fault{Kind: Upgrade, At: length * time.Duration(i+1) / time.Duration(p.sites+1), Site: s, For: p.between(0, time.Second)}
	}
	return faults
}

// draw takes the next card of the deck.
func (p *planner) draw() Kind {
	if len(p.left) == 0 {
		p.left = slices.Clone(p.kinds)
		p.rng.Shuffle(len(p.left), func(i, j int) { p.left[i], p.left[j] = p.left[j], p.left[i] })
	}
	k := p.left[0]
	p.left = p.left[1:]
	return k
}

func (p *planner) gap() time.Duration {
	return time.Duration(min(p.rng.ExpFloat64(), 4) * float64(meanGap))
}

// lasting draws how long a fault lasts. Half of those that keep sites apart
// last longer than a lease with its margin, and some end about then.
func (p *planner) lasting(k Kind) time.Duration {
	switch k {
	case KillDaemon, KillAll, RestartDaemon, Upgrade, KillShim:
		if p.rng.IntN(4) > 0 {
			return p.between(0, 2*time.Second)
		}
		return p.between(2*time.Second, 2*(lease+leaseMargin))
	case RotateLeaf, RotateCA: // for good
		return 0
	case FullDisk, HogDisk, HungDisk, RevokeSite, ForgetSite, UseToken, Reconfigure, FewFiles, HideShim, DrainSite, HoldJobs:
		return p.between(time.Second, 8*time.Second)
	}
	switch p.rng.IntN(5) {
	case 0, 1:
		return p.between(shortest, lease)
	case 2:
		return p.between(lease, lease+2*leaseMargin)
	}
	return p.between(lease+leaseMargin, longest)
}

func (p *planner) between(least, most time.Duration) time.Duration {
	return least + time.Duration(p.rng.Int64N(int64(most-least)+1)).Round(time.Millisecond)
}
