package bags

import "kith/store"

// Text names one of the policies that a bag may state.
type Text uint8

// The policies, in the order in which they are shown.
const (
	Requirements Text = iota
	Rank
	Concurrency
	Deadline
	Replicate
	Sites
	TextCount
)

// TextDoc says what a policy is.
type TextDoc struct {
	Name string
	// Truth says that it is true or false; it is a number otherwise.
	Truth bool
	// Reads are the roots of the variables that it may read.
	Reads []Root
	// Default is what holds where the bag states none, or it is UNDEFINED, in words.
	Default string
	// Sentence says what it decides.
	Sentence string
}

// Texts has the policies by their numbers.
var Texts = [TextCount]TextDoc{
	Requirements: {"requirements", true, []Root{RootHost, RootSite, RootBag, RootQueue}, "true; UNDEFINED is no match", "whether the host may run tasks of the bag"},
	Rank:         {"rank", false, []Root{RootHost, RootSite, RootBag, RootQueue}, "0", "how much the host should run this bag rather than others of its user: the higher goes first"},
	Concurrency:  {"concurrency", false, []Root{RootHost, RootSite, RootBag, RootQueue}, "as many as its places use up in 2 s", "how many tasks of this origin the host may have at once"},
	Deadline:     {"deadline", false, []Root{RootHost, RootSite, RootBag, RootQueue}, "what the walltimes of its tasks allow", "how many seconds one run of a task may take there, with its way and its wait; at least 1. Then it counts as lost"},
	Replicate:    {"replicate", true, []Root{RootBag, RootQueue, RootTask}, "when the first site has had it for as long as tasks of the bag run; UNDEFINED is false", "whether a task at sites should be run at one more, in the tail of a bag with replicas"},
	Sites:        {"sites", true, []Root{RootSite, RootBag, RootQueue, RootSplit}, "true; UNDEFINED is false", "whether the site is offered tasks of the bag at all"},
}

func (t Text) String() string { return Texts[t].Name }

// Of returns the text of a policy, "" if the bag states none.
func (t Text) Of(p *store.BagPolicies) string { return p.Texts[t] }

// Root is what a variable is of.
type Root uint8

// The roots. Each has a [Scope] of its own, but for RootTime and RootSplit, which are of a bag
// and a site at once, see [Scene.Split].
const (
	RootHost Root = iota
	RootSite
	RootBag
	RootQueue
	RootTask
	RootTime
	RootSplit
	rootCount
)

// Var is a variable that policies may read.
type Var uint8

// The variables.
const (
	HostSite Var = iota
	HostNode
	HostPlaces
	HostRunning
	HostStock
	HostErrorRate
	HostTurnaround
	HostDone
	HostFailed
	HostQuota

	SiteName
	SiteHome
	SiteProcessors
	SiteMemory
	SiteSpeed
	SiteFree
	SiteQueued
	SiteLoad
	SiteWork
	SiteDraining
	SiteErrorRate

	BagName
	BagUser
	BagPriority
	BagTasks
	BagLeft
	BagDone
	BagFailed
	BagUnsent
	BagRunning
	BagTail
	BagMeanRun
	BagDeviation
	BagCPUHours

	QueueBags
	QueueUnsent

	TaskIndex
	TaskFailures
	TaskReplicas

	BagAge
	Hour

	SiteSplit

	VarCount
)

// Type is what a variable holds.
type Type uint8

// The types.
const (
	Number Type = iota
	String
	Bool
)

func (t Type) String() string { return [...]string{"number", "string", "bool"}[t] }

// VarDoc says what a variable is.
type VarDoc struct {
	Name     string
	Root     Root
	Type     Type
	Sentence string
}

// Vars has the variables by their numbers. A number is a double, whatever it counts.
var Vars = [VarCount]VarDoc{
	HostSite:       {"host.site", RootHost, String, "name of the site that the host is of"},
	HostNode:       {"host.node", RootHost, String, "name of the node, empty at a site without nodes"},
	HostPlaces:     {"host.places", RootHost, Number, "places that run tasks of this shape there"},
	HostRunning:    {"host.running", RootHost, Number, "tasks of this origin and shape that run there"},
	HostStock:      {"host.stock", RootHost, Number, "tasks of this origin and shape that wait there to begin"},
	HostErrorRate:  {"host.error_rate", RootHost, Number, "share of its results that were failures, above what the same bags fail elsewhere, 0 to 1, the latest counts for a tenth"},
	HostTurnaround: {"host.turnaround", RootHost, Number, "seconds from a grant to a result there, the latest counts for a tenth; UNDEFINED before the first"},
	HostDone:       {"host.recent_done", RootHost, Number, "tasks that it has done well, half of it forgotten in an hour"},
	HostFailed:     {"host.recent_failed", RootHost, Number, "tasks that failed there, half of it forgotten in an hour"},
	HostQuota:      {"host.quota", RootHost, Number, "tasks that it may still lose: 4 for each place, half of it gone with each failure that is its own fault, 1 more with each success and each hour"},

	SiteName:       {"site.name", RootSite, String, "name of the site"},
	SiteHome:       {"site.home", RootSite, Bool, "whether it is the bag's own site"},
	SiteProcessors: {"site.processors", RootSite, Number, "processors that it has"},
	SiteMemory:     {"site.memory_bytes", RootSite, Number, "memory that it has, 0 for no limit"},
	SiteSpeed:      {"site.speed", RootSite, Number, "speed of one of its processors, 1 is the reference"},
	SiteFree:       {"site.free", RootSite, Number, "processors neither in use nor reserved"},
	SiteQueued:     {"site.queued", RootSite, Number, "copies of jobs and pilots that wait there"},
	SiteLoad:       {"site.load", RootSite, Number, "processors asked for over processors there"},
	SiteWork:       {"site.work", RootSite, Number, "seconds until it has drained what it has"},
	SiteDraining:   {"site.draining", RootSite, Bool, "whether it takes no more work"},
	SiteErrorRate:  {"site.failure_rate", RootSite, Number, "the same as host.error_rate, of all its hosts together"},

	BagName:      {"bag.name", RootBag, String, "name of the bag"},
	BagUser:      {"bag.user", RootBag, String, "who submitted it"},
	BagPriority:  {"bag.priority", RootBag, Number, "its priority"},
	BagTasks:     {"bag.tasks", RootBag, Number, "tasks that it has"},
	BagLeft:      {"bag.left", RootBag, Number, "tasks that have not ended"},
	BagDone:      {"bag.done", RootBag, Number, "tasks that were done well"},
	BagFailed:    {"bag.failed", RootBag, Number, "tasks that ended as failed"},
	BagUnsent:    {"bag.unsent", RootBag, Number, "tasks that no site has"},
	BagRunning:   {"bag.running", RootBag, Number, "tasks that sites have"},
	BagTail:      {"bag.tail", RootBag, Bool, "whether its tail has begun: fewer tasks were unsent than places serve it, or than its --tail-at"},
	BagMeanRun:   {"bag.mean_run", RootBag, Number, "mean run time of its tasks, in seconds; UNDEFINED before the first result"},
	BagDeviation: {"bag.sd_run", RootBag, Number, "standard deviation of their run times, in seconds; UNDEFINED before the first result"},
	BagCPUHours:  {"bag.cpu_hours", RootBag, Number, "processor-hours that its tasks have run"},

	QueueBags:   {"queue.bags", RootQueue, Number, "bags of this origin that have not ended"},
	QueueUnsent: {"queue.unsent", RootQueue, Number, "tasks of all of them that no site has"},

	TaskIndex:    {"task.index", RootTask, Number, "index of the task"},
	TaskFailures: {"task.failures", RootTask, Number, "runs of it that failed or were lost"},
	TaskReplicas: {"task.replicas", RootTask, Number, "sites that have it now"},

	BagAge: {"bag.age", RootTime, Number, "seconds since the submission of the bag"},
	Hour:   {"hour", RootTime, Number, "hour of the day, 0 to 23, UTC"},

	SiteSplit: {"site.split", RootSplit, Bool, "whether it is one of the sites at which the tasks that have not ended would probably end first if they were divided among these; only `sites` reads it"},
}

// Replica is a run of a task that is under way: an element of the list replicas, which
// only [Replicate] may read.
type Replica struct {
	Site, Node string
	// Age and Turnaround are in seconds; Turnaround is NaN if the host has none yet.
	Age, ErrorRate, Turnaround float64
}

// VarSet is a set of variables.
type VarSet uint64

// Add adds a variable.
func (s *VarSet) Add(v Var) { *s |= 1 << v }

// Has reports whether a variable is in it.
func (s VarSet) Has(v Var) bool { return s>>v&1 != 0 }

// OfRoot returns the variables of a root.
func OfRoot(r Root) VarSet {
	var s VarSet
	for v := range VarCount {
		if Vars[v].Root == r {
			s.Add(v)
		}
	}
	return s
}
