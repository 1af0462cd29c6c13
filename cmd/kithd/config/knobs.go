package config

import (
	"math"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/sitesched"
	"kith/sitesched/level"
	"kith/store"
)

// Knob is a key of the file and the field that it sets.
type Knob struct {
	// Key is the dotted name, "timing.claim".
	Key string
	// Reloads says that a running kithd takes a new value up.
	Reloads bool
	// Says is the sentence for docs/operations.md, in Markdown.
	Says string
	field
}

// fixed is a knob whose new value needs a restart.
func fixed(key string, f interface{ erased() field }, says string) Knob {
	return Knob{key, false, says, f.erased()}
}

// live is a knob whose new value a running kithd takes up.
func live(key string, f interface{ erased() field }, says string) Knob {
	return Knob{key, true, says, f.erased()}
}

// Knobs returns all knobs but those of peers, in the order of the page, over
// the fields of c. Where a row has no bounds, meta or sitesched checks them.
func (c *Config) Knobs() []Knob {
	std := meta.Default()
	s, p, l, t, b, n, f, v := &c.Scheduler, &c.Placement, &c.Limits, &c.Timing, &c.Bags, &c.NoHarm, &c.Forecast, &c.Level
	return []Knob{
		fixed("site", must(text(&c.Site, ""), siteName), "name of this site among the others: 1 to 32 of `a-z`, `0-9`, `-`, beginning with a letter, not ending with `-`; it never changes"),
		fixed("data", must(text(&c.Data, "/var/lib/kith"), absolute), "folder for everything the site keeps; absolute"),

		fixed("listen.address", must(text(&c.Listen.Address, "127.0.0.1:7410"), listenAddress), "host:port for clients and peers"),
		fixed("listen.advertise", must(text(&c.Listen.Advertise, ""), advertised), "host:port under which others reach this site; empty: as `address`, which must then name one address; `\"none\"`: nothing can connect, this site dials out. Told to others with the load"),
		fixed("listen.socket", must(text(&c.Listen.Socket, ""), socketPath), "path of the unix socket for users of this machine; empty: `kith.sock` in the data folder, which `root` alone can reach. See [who may call](#who-may-call)"),
		fixed("listen.allow_own_uid", truth(&c.Listen.AllowOwnUID, false), "let the account of `kithd` itself call at the socket. Jobs run under it, so every job is then a user: for trying out on one account only"),
		fixed("listen.metrics", must(text(&c.Listen.Metrics, ""), metricsAddress), "host:port on loopback where [figures](#figures-for-prometheus) are served over HTTP, to whoever reaches it; empty: nowhere"),
		fixed("listen.insecure_loopback", truth(&c.Listen.InsecureLoopback, false), "serve without keys: nothing is encrypted, anyone who reaches the port can do everything. Allows loopback addresses only, also in `[[peers]]`; for tests. So does `kithd --insecure-loopback`"),

		fixed("members.self", must(text(&c.Members.Self, ""), memberName), "name of this machine among three or five that keep the facts of the site together, so that it goes on when one or two of them are lost: 1 to 63 letters, digits and dashes; empty: the site is one machine. See [a site of three](#a-site-of-three)"),
		fixed("members.cluster", must(text(&c.Members.Cluster, ""), clusterID), "id of these machines, 32 hexadecimal digits, the same at all of them and never changed; `kithd members id` draws one"),
		fixed("members.address", must(text(&c.Members.Address, ""), peerAddress), "host:port under which the other machines dial this one; empty: as `listen.advertise`, or `listen.address`"),
		fixed("members.executor", must(text(&c.Members.Executor, ""), memberName), "name of the machine that has the processors of the site and runs its jobs: one of the members, or one more that has `members.self` and the keys, too, and is never added. The member that leads drives it. The same at all of them, with `scheduler.processors`; empty: the site has no processors. See [processors of a site of three](#processors-of-a-site-of-three)"),
		fixed("members.executor_address", must(text(&c.Members.ExecutorAddress, ""), peerAddress), "host:port under which members dial that machine, if it is no member"),
		fixed("members.executor_lost", between(span(&c.Members.ExecutorLost, 5*time.Minute), 5*time.Second, 24*time.Hour, "give 5s to 24h"), "how long nothing may be heard of that machine until jobs that run there are lost (`node lost`), and go on by their `on_site_lost`. Jobs with `rerun` stop there by themselves when no member has driven the machine for so long"),

		fixed("scheduler.processors", between(whole(&s.Processors, 0), 0, job.MaxProcessors, "give 1 to 16777216, or 0 for as many as the machine has"), "processors the site offers; 0: as many as the machine has. More than that means that jobs share"),
		fixed("scheduler.memory", between(size(&s.MemoryBytes, 0), 0, sitesched.MaxMemoryBytes, `give a size up to "1048576TiB", or 0 for what the machine has`), "memory the site offers to all jobs together; 0: what the machine has. See [memory](#memory)"),
		fixed("scheduler.backfill", choice(&s.Backfill, sitesched.EASY, sitesched.NoBackfill, sitesched.EASY, sitesched.Conservative, sitesched.ConservativeReplan), "`\"none\"`: first come, first served. `\"easy\"`: a job may overtake if that does not delay the first one. `\"conservative\"`: every job has a guaranteed start. `\"conservative-replan\"`: the same, but plans are made anew whenever a job ends"),
		fixed("scheduler.queues", choice(&s.Queues, sitesched.DualBackfill, sitesched.Single, sitesched.DualStrict, sitesched.DualBackfill, sitesched.DualPreempt), "`\"single\"`: one queue for local and remote. `\"dual-backfill\"`: remote copies fill what local jobs leave. `\"dual-strict\"`: remote copies only while no local job waits. `\"dual-preempt\"`: local jobs do not see jobs of other sites, which leave for them, see [guests that leave](#guests-that-leave)"),
		fixed("scheduler.guarantee", choice(&s.Scope, sitesched.ScopeAll, sitesched.ScopeHead, sitesched.ScopeAll), "which local jobs a remote start must not delay: `\"head\"` the first of the queue, `\"all\"` every one within `guarantee_depth`"),
		fixed("scheduler.guarantee_depth", between(whole(&s.GuaranteeDepth, 1000), 0, math.MaxInt32, "give a number of jobs, or 0 for all of them"), "how many waiting jobs at the head of the local queue have the guarantee of `\"all\"`, or a slot under `\"conservative\"`; `0`: all of them, which makes a pass slow where tens of thousands wait. A job behind them gets its guarantee when it moves up, and keeps it; `kith why` says that it waits there"),
		fixed("scheduler.patience", span(&s.Patience, 10*time.Minute), "where local and remote have queues of their own (`\"dual-backfill\"`): how long a copy of another site waits before copies of other sites that came later may no longer delay it; one whose own site can never run it does not wait so long. It never delays a local job. `\"0s\"`: for ever, so that narrow copies may keep a wide one waiting without end. See [Copies that wait long](#copies-that-wait-long)"),
		fixed("scheduler.speed", between(fraction(&s.Speed, 1), 1e-3, 1e3, "give a number from 0.001 to 1000, 1 for the reference"), "speed of a processor against a reference that the sites of a federation agree on. Sites are compared by it, `kith sites` shows it. A time limit is time on the clock whatever the speed is: a job with a limit of 10 s may run for 10 s at a site of speed 2, too"),

		live("placement.scheme", choice(&p.Scheme, std.Placement.Scheme, meta.Schemes()...), "`\"k-dual\"`: here and at the K−1 least loaded others. `\"k-distributed\"`: at the K least loaded. `\"distributed\"`: at the least loaded. `\"independent\"`: here only. `\"mct\"`: where it would end first. `\"hierarchical\"`: where it would start first"),
		live("placement.rank", choice(&p.Rank, std.Placement.Rank, meta.RankWork, meta.RankProcs, meta.RankStart, meta.RankCompletion, meta.RankForecast), "what sites are ranked by, less is better: `\"work\"` seconds to drain the site; `\"procs\"` processors asked for over processors there; `\"start\"` when the job would start and `\"completion\"` when it would end if all ran for their limits, `\"forecast\"` when it would end by [forecasts](#forecasts): all three are asked of each site at submission, under `\"k-dual\"` only of a job that cannot start here at once. Schemes `\"mct\"` and `\"hierarchical\"` have a rank of their own: leave it out there"),
		live("placement.copies", whole(&p.Copies, std.Placement.Copies), "K where a job does not say: 1 to 64, this site included. More copies shorten waits ever less and cost messages, see [ADR 0013](adr/0013-default-placement.md)"),
		live("placement.weight", fraction(&p.Weight, std.Placement.Weight), "sites that start their own jobs first (dual queues) and those that do not are two groups. The score of sites of the other group than this one's is multiplied with the weight while those that start their own first have more computing power than the rest: they promise more than they keep. `1.3` is the paper's value; `0.0` for none"),
		live("placement.adaptive", truth(&p.Adaptive, std.Placement.Adaptive), "multiply the score of each site with how much later than promised it completed jobs of this site lately; for ranks `start`, `completion` and `forecast`"),
		live("placement.risk", between(fraction(&p.Risk, std.Placement.Risk), 0, 10, "give 0 to 10"), "for rank `forecast`: how many standard deviations of when a job would end are added to its median. Above 0 a site of which little is known ranks behind one that is as good and certain"),
		live("placement.conserve", truth(&p.Conserve, std.Placement.Conserve), "keep work where processors are: a queued job gets back the copies that it lost, an idle site gets copies of jobs that wait elsewhere, beyond K if need be, and loads count what this site has sent since they were told. `false` is the papers' placement, see [ADR 0026](adr/0026-conserve-work.md)"),
		live("placement.max_load_age", span(&p.MaxLoadAge, std.Placement.MaxLoadAge), "a load older than this does not rank; the site comes behind all others"),
		live("placement.query_timeout", span(&p.QueryTimeout, std.Placement.QueryTimeout), "how long to wait for the answers that `start`, `completion` and `forecast` need"),

		live("limits.jobs", whole(&l.Jobs, std.Limits.Jobs), "jobs submitted here that have not ended; then submissions get RESOURCE_EXHAUSTED"),
		live("limits.copies_per_origin", whole(&l.CopiesPerOrigin, std.Limits.CopiesPerOrigin), "copies of one other site waiting or running here; then it is told *full* and goes to the next"),
		live("limits.copies", whole(&l.Copies, std.Limits.Copies), "copies of all other sites together, waiting or running here; then they are told *too many copies* and go to the next. Copies of jobs that were submitted here do not count: `jobs` bounds them"),
		live("limits.closed_jobs", whole(&l.ClosedJobs, std.Limits.ClosedJobs), "ended jobs that are remembered"),
		live("limits.closed_for", span(&l.ClosedFor, std.Limits.ClosedFor), "and how long; their outputs go with them"),

		live("limits.bags", between(whole(&l.Bags, 10_000), 1, math.MaxInt32, "give a positive value"), "bags submitted here that have not ended; then submissions get RESOURCE_EXHAUSTED"),

		live("bags.turn", between(span(&b.Turn, std.Bags.Turn), 1, job.MaxWalltime, "give a positive duration of at most ten years"), "how long processors run one task of a bag after the other before whatever waits has its turn; longer if the time limit of a task is"),
		live("bags.yield", choice(&b.Yield, std.Bags.Yield, bags.YieldNever, bags.YieldTask, bags.YieldNow), "what tasks of bags do while a job of this site's own users waits for processors. `\"never\"`: one after the other to the end of the turn. `\"task\"`: none begins. `\"now\"`: those of other sites that run are stopped, too, and run again from their begin, here or elsewhere"),
		live("bags.share", must(fraction(&b.Share, std.Bags.Share), share), "the part of the processors that tasks of one other site may have while others wait: above 0, at most 1"),

		fixed("no_harm.mode", choice(&n.Mode, meta.HarmPromise, meta.HarmPromise, meta.HarmBounded, meta.HarmInvisible), "what guests may do to jobs of this site. `\"promise\"`: have what no promise to one of them needs. `\"bounded\"`: the same, but they leave so that they alone keep none waiting for longer than `bound`. `\"invisible\"`: leave as soon as one needs their processors; it is `queues = \"dual-preempt\"`, and each implies the other. See [guests that leave](#guests-that-leave)"),
		live("no_harm.guest_walltime", between(span(&n.GuestWalltime, 0), 0, job.MaxWalltime, "give a duration of at most ten years, or \"0s\" for any"), "the longest time limit of a job of another site, also of a task; those with longer ones are refused with `guest-walltime`. `\"0s\"`: any"),
		fixed("no_harm.keep_free", between(whole(&s.KeepFree, 0), 0, job.MaxProcessors, "give a number of processors, or 0 for none"), "processors that jobs and tasks of other sites together never have, at most as many as the site has; for `queues = \"dual-backfill\"` or `\"dual-preempt\"`. A job that is wider than the rest is refused with `kept-free`"),
		live("no_harm.bound", between(span(&n.Bound, std.NoHarm.Bound), 0, job.MaxWalltime, "give a duration of at most ten years"), "for how long guests alone may keep a job of this site waiting before it counts as a violation. With `mode = \"bounded\"` they leave before, and it is at least the grace that they have for that; else it is counted only"),

		live("level.rank", between(whole(&v.Rank, 0), 0, job.MaxLevel, "give 1 (the smallest level) to 16, or 0 for none"), "the site is a level of a hierarchy for jobs of unknown length: 1 for the smallest, which answers first, to 16; `0`: it is none. Several sites may be one level, also with different limits. Jobs that are of no hierarchy see no levels. See [levels](#levels)"),
		live("level.queue_limit", between(span(&v.Queue, 0), 0, job.MaxWalltime, "give a duration of at most ten years"), "T_q: the longest that a job of the hierarchy stays here, from its arrival to its end"),
		live("level.run_limit", between(span(&v.Run, 0), 0, job.MaxWalltime, "give a duration of at most ten years"), "T_e: the longest that it runs here, at least 1 s and at most `queue_limit`. Others are planned around it: a job that has used it is stopped like any other at its time limit, and a quarter of it before, a minute at the most, it is asked to save what it has done"),
		live("level.beta", fraction(&v.Beta, level.DefaultBound), "β: the share of a run that processors bound, above 0 to 1. What a level can do in a time T is φ = T · processors · speed · β, in processor-seconds of the reference; of a job that is its own processors"),
		live("level.estimate_share", fraction(&v.EstimateShare, level.DefaultEstimateShare), "α: the part of `run_limit` that the estimator of a job may take ([estimates](#estimates)), 0 to below 1; 0: none runs here"),
		live("level.overload", action(&v.Actions[level.Overload]), "what becomes of a job that comes when more work is here than φ(T_q). `\"demote\"`: it goes to the next lower level. `\"reject\"`: it ends. `\"off\"`: it stays. `\"default\"`: demote, and reject at the last level"),
		live("level.mismatch", action(&v.Actions[level.Mismatch]), "the same for a job that needs more than φ(T_e), by the bound that is known of it"),
		live("level.overdue", action(&v.Actions[level.Overdue]), "what becomes of a job that has used T_q or T_e. `\"terminate\"`: what runs ends at its time limit, with the results that it has; what waits ends. `\"default\"`: demote, and terminate at the last level. Never `\"off\"`"),
		live("level.task_overdue", action(&v.Actions[level.TaskOverdue]), "the same for a job that would use more by the bound that is known of it; at the last level `\"off\"`. What runs is demoted or stays"),
		live("level.queue_overdue", action(&v.Actions[level.QueueOverdue]), "the same for a job with which more work is here than φ(T_q), in the order of arrival; at the last level `\"off\"`. What runs is demoted or stays"),
		live("level.share", choice(&v.Share, level.ShareCopies, level.ShareCopies, level.SharePush), "how jobs of the hierarchy that are submitted here are shared by the sites of a level, whether or not this site is one. `\"copies\"`: each waits at K of them, and the first that can start it does. `\"push\"`: each waits at one, and is moved to one that would be done with it clearly sooner. See [load sharing](#load-sharing-inside-a-level)"),
		live("level.share_period", between(span(&v.SharePeriod, level.SharePeriod), time.Second, 24*time.Hour, "give a duration of a second to a day"), "how often this site samples how many of its processors are available to the hierarchy, and, with `\"push\"`, how often it compares where its jobs wait. Keep it alike at all sites"),
		fixed("checkpoint.max_grace", between(span(&c.Checkpoint.MaxGrace, 5*time.Minute), time.Second, 24*time.Hour, "give a duration of a second to a day"), "the most that a job has to save what it has done when it is asked to, whatever it asks for itself; then it is stopped"),
		fixed("checkpoint.max_bytes", between(size(&c.Checkpoint.MaxBytes, 64<<30), 1, math.MaxInt64, "give a positive size"), "the files of a checkpoint together. One that is larger is left out, and the job goes on from the one before"),

		fixed("forecast.enabled", truth(&f.Enabled, true), "say when a job that has to wait will start, ask and answer other sites about it, and keep count of how often that held. It changes no schedule, unless `placement.rank` is `\"forecast\"`. See [forecasts](#forecasts)"),
		fixed("forecast.draws", between(whole(&f.Draws, forecast.DefaultScenarios), forecast.MinScenarios, 1000, "give 30 to 1000"), "scenarios that a forecast is made of; more than 50 cost more and gain next to nothing"),
		fixed("forecast.history", between(whole(&f.History, store.MaxPast), 1, store.MaxPast, "give 1 to 100000"), "attempts that have ended that the site remembers, to learn run times from and for `kith history export`"),
		fixed("forecast.arrivals", truth(&f.Arrivals, true), "let scenarios have jobs come in as on earlier days at the same time of day"),
		fixed("forecast.bounds", truth(&f.Bounds, false), "have jobs of unknown time without an estimator begin at a level that does for one job what nine of ten of their user's jobs needed ([estimates](#estimates))"),

		fixed("timing.claim", between(span(&t.Claim, std.Timing.Claim), 1, job.MaxWalltime, "give a positive duration of at most ten years"), "how long processors are kept for a claim without an answer; copies of other sites are planned for so much longer, so that a claim that is granted in time delays no local job"),
		live("timing.backoff", span(&t.Backoff, std.Timing.Backoff), "how long that copy is then left alone"),
		live("timing.resend", span(&t.Resend, std.Timing.Resend), "when a request is repeated"),
		live("timing.vanish", span(&t.Vanish, std.Timing.Vanish), "when copies at a site out of reach are replaced by copies elsewhere"),
		live("timing.anti_entropy", span(&t.AntiEntropy, std.Timing.AntiEntropy), "how often host and origin compare what they hold"),
		fixed("timing.staging", between(span(&t.Staging, time.Minute), 1, job.MaxWalltime, "give a positive duration of at most ten years"), "how long processors are held while the inputs of another site's job are brought; then others have them. While a full disk has no room for a job they are held for at most 5 s"),
		live("timing.load", span(&t.Load, std.Timing.Load), "how often the site tells its load"),
		live("timing.retry", span(&t.Retry, std.Timing.Retry), "how often jobs without a place look for one"),
		live("timing.lease", span(&t.Lease, std.Timing.Lease), "how long another site may run a job under `on_site_lost` `rerun` without hearing of this one; renewed three times as often"),
		live("timing.lease_margin", span(&t.LeaseMargin, std.Timing.LeaseMargin), "how much longer this site waits before it runs the job again"),
		live("timing.clock_rate", fraction(&t.ClockRate, std.Timing.ClockRate), "by what fraction the rate of any site's clock may be off; this site waits twice as much of the lease longer"),
		live("timing.overdue", span(&t.Overdue, std.Timing.Overdue), "how much longer than its time limit another site may hold a job of this one that it does not end while it is in reach; then the job goes on as `on_site_lost` says, see [below](#a-site-that-does-not-finish-jobs)"),
		fixed("timing.heartbeat", between(span(&t.Heartbeat, 5*time.Second), 1, math.MaxInt64, "give a positive duration"), "how often something is sent on an idle stream; after three without a sign of the other site the stream is closed. Keep it alike at all sites"),

		fixed("executor.grace", between(span(&c.Executor.Grace, 5*time.Second), 0, math.MaxInt64, "give a duration that is not negative"), "time between SIGTERM and SIGKILL"),
		fixed("executor.directories", must(list(&c.Executor.Directories), allAbsolute), "absolute folders in which, and below which, jobs may ask to run"),
		fixed("executor.max_output", between(size(&c.Executor.MaxOutputBytes, 1<<30), 1, math.MaxInt64, "give a positive size"), "bound of stdout and stderr, each; a job that writes more is killed"),
		fixed("executor.pin", truth(&c.Executor.Pin, true), "keep each job on processors of its own, where the site offers no more than the machine has. Turn it off where several sites share a machine"),

		fixed("owner.sharing", truth(&c.Owner.Sharing, false), "the machine belongs to somebody who comes first: jobs run below everything else that it does, what its owner takes is measured and told to other sites, and time limits are longer here by it. See [machines whose owners come first](#machines-whose-owners-come-first)"),
		fixed("owner.interval", between(span(&c.Owner.Interval, 10*time.Second), time.Second, time.Minute, "give 1s to 1m"), "how often the owner's work is measured at the most; less often while it is steady, never less than once a minute"),

		fixed("files.input_roots", must(list(&c.Files.InputRoots), allAbsolute), "folders of this machine that jobs submitted here may name inputs from (`source` in the API)"),
		fixed("files.quota", between(size(&c.Files.QuotaBytes, 0), 0, math.MaxInt64, "give a positive size, or 0 for no bound"), "the most that inputs and outputs may take; 0: no bound of its own"),
		fixed("files.keep_free", between(size(&c.Files.KeepFreeBytes, 256<<20), 0, math.MaxInt64, "give a size that is not negative"), "left free on the disk"),
		fixed("files.reserve", between(size(&c.Files.ReserveBytes, 32<<20), 0, 1<<40, "give a size from 0 to 1 TiB"), "kept in the data folder and given up when the disk is full, so that the ends of jobs can be written down; taken again when twice as much is free; 0: none"),
		fixed("files.max_file", between(size(&c.Files.MaxFileBytes, 64<<30), 1, math.MaxInt64, "give a positive size"), "largest single file"),

		fixed("flight.enabled", truth(&c.Flight.Enabled, false), "record all that the engines are fed, in the folder `flight` of the data folder, to be played again after an incident. See [the flight recorder](#the-flight-recorder)"),
		fixed("flight.size", between(size(&c.Flight.SizeBytes, 1<<30), 1<<20, 1<<40, "give a size from 1 MiB to 1 TiB"), "what the recordings may take together"),
		fixed("flight.files", between(whole(&c.Flight.Files, 4), 2, 1000, "give 2 to 1000"), "how many files that is; the oldest goes when the newest is full. Each begins with an image of the site's state, about 600 bytes for each job that is remembered, which may take half of a file"),

		fixed("rates.queries", rate(&c.Rates.Queries, 1000), "questions of one peer about starts that are answered in a second, half of it together; it is told to ask later beyond that. Of rates below that say nothing else twice as many may come together"),
		fixed("rates.protocol", rate(&c.Rates.Protocol, 10_000), "messages of one peer about copies, claims and results that are taken in a second, a twentieth of it together; what is refused by the other rates, or because the peer may not say it, counts here four times. None is lost: its stream is read more slowly"),
		fixed("rates.comparisons", rate(&c.Rates.Comparisons, 50), "summaries and lists of copies, with which sites compare what they hold, and claims for tasks, that are taken of one peer in a second; its stream is read more slowly beyond that"),
		fixed("rates.loads", rate(&c.Rates.Loads, 50), "loads that one peer may tell in a second; others are dropped"),
		fixed("rates.files", rate(&c.Rates.Files, 2000), "pieces of files that one peer may ask for in a second; it is told that this site is busy beyond that"),
		fixed("rates.streams", between(whole(&c.Rates.Streams, 1), 1, 1000, "give 1 to 1000"), "streams of one peer that begin in a second, 8 together: each makes both sites tell each other all that is open between them. Further ones wait, for up to 5 s, and are refused beyond that"),
		fixed("rates.user", rate(&c.Rates.User, 20_000), "requests of one user in a second, who is known by name, else by address; more get RESOURCE_EXHAUSTED. To cancel, questions about health, and calls at the socket but to submit are always taken"),
		fixed("rates.handshakes", rate(&c.Rates.Handshakes, 100), "handshakes of TLS of one address that begin in a second, a twentieth of it together; further ones wait, for up to 3 s, and beyond that connections are closed, and for a second dropped"),
		fixed("rates.frames", between(whole(&c.Rates.Frames, 40_000), 1000, 10_000_000, "give 1000 to 10000000"), "frames of HTTP/2 that are read at the port of one address, or of one peer, in a second, a tenth of it together; its connections are read more slowly beyond that. A call is about 3 to 6, a message or 16 KiB of it 1, one that is taken back 7 and one without a good token 20 more, a stream of a peer that begins 1/200 of all. A connection that goes on without a pause, with frames that bring neither a call nor data, is closed"),

		live("log.level", choice(&c.Log.Level, "info", "debug", "info", "warn", "error"), "`\"debug\"`, `\"info\"`, `\"warn\"` or `\"error\"`"),
		fixed("log.format", choice(&c.Log.Format, "json", "json", "text"), "or `\"text\"`; on stderr"),
	}
}

// action is what a trigger of a level does.
func action(v *level.Action) typed[level.Action] {
	return choice(v, level.Default, level.Default, level.Demote, level.Reject, level.Terminate, level.Off)
}

func share(part float64) (remedy string) {
	if !(part > 0 && part <= 1) {
		return "give a number above 0 and at most 1"
	}
	return ""
}

// rate is a number of messages in a second. Fewer than ten would keep honest peers from
// their work.
func rate(v *int, std int) interface{ erased() field } {
	return between(whole(v, std), 10, 1_000_000, "give 10 to 1000000")
}

// Knobs returns the knobs of a peer.
func (p *Peer) Knobs() []Knob {
	return []Knob{
		live("peers.site", must(text(&p.Site, ""), siteName), "its name"),
		live("peers.address", must(text(&p.Address, ""), peerAddress), "its host:port; empty: it dials this site. One of the two must have the other's address"),
	}
}

// Keys returns the names of all keys in the order of the page.
func Keys() []string {
	var keys []string
	for _, k := range allKnobs() {
		keys = append(keys, k.Key)
	}
	return keys
}

// allKnobs are the knobs with those of a peer among them, where the page has them.
func allKnobs() []Knob {
	var c Config
	var list []Knob
	for _, k := range c.Knobs() {
		if k.Key == "log.level" {
			list = append(list, new(Peer).Knobs()...)
		}
		list = append(list, k)
	}
	return list
}
