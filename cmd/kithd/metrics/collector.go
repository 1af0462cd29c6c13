package metrics

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	kithv1 "kith/proto/gen/kith/v1"
)

// collector asks a site for its figures when they are collected. Its series are as many as
// the sites that are known, and 16 hosts of each.
type collector struct{ sites Sites }

// figure is a series of one site, or of one host of tasks.
type figure[T any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(T) float64
}

func gauge[T any](name, help string, of func(T) float64, labels ...string) figure[T] {
	return figure[T]{prometheus.NewDesc("kith_"+name, help, labels, nil), prometheus.GaugeValue, of}
}

func counter(name, help string, of func(*kithv1.SiteCounters) float64) figure[*kithv1.SiteCounters] {
	return figure[*kithv1.SiteCounters]{prometheus.NewDesc("kith_"+name+"_total", help, nil, nil), prometheus.CounterValue, of}
}

// loaded are told of sites whose load is known.
var loaded = []figure[*kithv1.Site]{
	gauge("site_processors", "Processors that a site has.", func(s *kithv1.Site) float64 { return float64(s.GetProcessors()) }, "site"),
	gauge("site_processors_free", "Free processors of a site.", func(s *kithv1.Site) float64 { return float64(s.GetFreeProcessors()) }, "site"),
	gauge("site_copies_queued", "Copies that wait in the queues of a site.", func(s *kithv1.Site) float64 { return float64(s.GetQueuedCopies()) }, "site"),
	gauge("site_attempts_running", "Attempts that run at a site.", func(s *kithv1.Site) float64 { return float64(s.GetRunningAttempts()) }, "site"),
	gauge("site_load_work_seconds", "How long a site needs to drain what it has.", func(s *kithv1.Site) float64 { return s.GetLoadWorkSeconds() }, "site"),
	gauge("site_load_age_seconds", "How old what is known of the load of a site is.", func(s *kithv1.Site) float64 { return s.GetLoadAge().AsDuration().Seconds() }, "site"),
	gauge("site_draining", "Whether a site takes no new copies and starts nothing.", func(s *kithv1.Site) float64 { return truth(s.GetDraining()) }, "site"),
	gauge("site_owner_share", "Share of a processor that the owner of a site's machine is expected to take; 0 where no owner has a part.", func(s *kithv1.Site) float64 {
		if len(s.GetOwnerLoads()) == 0 {
			return 0
		}
		return s.GetOwnerLoads()[0].GetRho()
	}, "site"),
	gauge("site_not_starting", "Whether a site starts nothing for a while, because it could not.", func(s *kithv1.Site) float64 { return truth(s.GetNotStarting()) }, "site"),
}

// reachable is told of every site.
var reachable = gauge("site_reachable", "Whether there is a stream to a site; of the site itself 1.", func(s *kithv1.Site) float64 {
	return truth(s.GetReachability() == kithv1.Site_REACHABILITY_SELF || s.GetReachability() == kithv1.Site_REACHABILITY_CONNECTED)
}, "site")

// own are told of the site itself.
var own = []figure[*kithv1.Site]{
	gauge("disk_trouble", "Whether something is wrong with the disk of the data folder.", func(s *kithv1.Site) float64 { return truth(s.GetDiskTrouble() != "") }),
	gauge("key_trouble", "Whether a certificate of the site ends soon or has ended.", func(s *kithv1.Site) float64 { return truth(s.GetKeyTrouble() != "") }),
	gauge("certificate_expire_timestamp_seconds", "When the certificate ends by which other sites know this one; 0 if it serves without keys.",
		func(s *kithv1.Site) float64 { return float64(s.GetCertificateExpireTime().GetSeconds()) }),
}

// hosts are told of the hosts to which the site has given tasks of bags.
var hosts = []figure[*kithv1.HostStanding]{
	gauge("host_held_back", "Whether a host of tasks is held back.", func(h *kithv1.HostStanding) float64 { return truth(h.GetHeldBack()) }, "site", "node"),
	gauge("host_error_ratio", "Share of the results of a host that were failures, above what the same bags fail elsewhere.",
		func(h *kithv1.HostStanding) float64 { return h.GetErrorRate() }, "site", "node"),
	gauge("host_turnaround_seconds", "From the grant of a task to its result, of late; 0 before the first.",
		func(h *kithv1.HostStanding) float64 { return h.GetTurnaroundSeconds() }, "site", "node"),
	gauge("host_tasks_done_recent", "Tasks that a host has done well, half of it forgotten in an hour.",
		func(h *kithv1.HostStanding) float64 { return h.GetRecentDone() }, "site", "node"),
	gauge("host_tasks_failed_recent", "Tasks that failed at a host, half of it forgotten in an hour.",
		func(h *kithv1.HostStanding) float64 { return h.GetRecentFailed() }, "site", "node"),
	gauge("host_quota_tasks", "Tasks that a host may still lose before it is held back.", func(h *kithv1.HostStanding) float64 { return h.GetQuota() }, "site", "node"),
}

// counters count since the daemon started.
var counters = []figure[*kithv1.SiteCounters]{
	counter("jobs_submitted", "Jobs submitted here.", func(c *kithv1.SiteCounters) float64 { return float64(c.GetJobsSubmitted()) }),
	counter("jobs_closed", "Jobs submitted here that ended.", func(c *kithv1.SiteCounters) float64 { return float64(c.GetJobsClosed()) }),
	counter("copies_queued", "Copies accepted here, of all origins.", func(c *kithv1.SiteCounters) float64 { return float64(c.GetCopiesQueued()) }),
	counter("copies_refused", "Copies refused here.", func(c *kithv1.SiteCounters) float64 { return float64(c.GetCopiesRefused()) }),
	counter("attempts_started", "Attempts started here.", func(c *kithv1.SiteCounters) float64 { return float64(c.GetAttemptsStarted()) }),
	counter("attempts_started_remote", "Attempts started here for other origins.", func(c *kithv1.SiteCounters) float64 { return float64(c.GetAttemptsStartedRemote()) }),
	counter("claims_granted", "Claims on jobs of this origin that were granted.", func(c *kithv1.SiteCounters) float64 { return float64(c.GetClaimsGranted()) }),
	counter("claims_denied", "Claims on jobs of this origin that were denied.", func(c *kithv1.SiteCounters) float64 { return float64(c.GetClaimsDenied()) }),
	counter("claims_timed_out", "Claims of this host that were not answered in time.", func(c *kithv1.SiteCounters) float64 { return float64(c.GetClaimsTimedOut()) }),
	counter("claim_messages_wire", "Claims and withdrawals that crossed between sites, retries included.", func(c *kithv1.SiteCounters) float64 { return float64(c.GetClaimMessagesWire()) }),
	counter("withdrawals", "Copies that this origin withdrew.", func(c *kithv1.SiteCounters) float64 { return float64(c.GetWithdrawals()) }),
	counter("wait_seconds", "How long attempts started here had waited since their submission or arrival.", func(c *kithv1.SiteCounters) float64 { return c.GetWaitSeconds() }),
	counter("file_sent_bytes", "Bytes of files sent to other sites.", func(c *kithv1.SiteCounters) float64 { return float64(c.GetFileBytesSent()) }),
	counter("file_received_bytes", "Bytes of files received from other sites.", func(c *kithv1.SiteCounters) float64 { return float64(c.GetFileBytesReceived()) }),
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	describe(to, loaded)
	describe(to, []figure[*kithv1.Site]{reachable})
	describe(to, own)
	describe(to, hosts)
	describe(to, counters)
	describe(to, harmed)
	describe(to, forecasts)
	to <- blockedDesc
}

func describe[T any](to chan<- *prometheus.Desc, figures []figure[T]) {
	for _, f := range figures {
		to <- f.desc
	}
}

// Collect implements [prometheus.Collector]. If the site does not answer, the whole request
// fails: figures that are missing look as if the site were idle.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	site, err := c.sites.GetSite(ctx, &kithv1.GetSiteRequest{})
	if err != nil {
		to <- prometheus.NewInvalidMetric(counters[0].desc, fmt.Errorf("the site does not answer: %w", err))
		return
	}
	list, err := c.sites.ListSites(ctx, &kithv1.ListSitesRequest{})
	if err != nil {
		to <- prometheus.NewInvalidMetric(reachable.desc, fmt.Errorf("the site does not answer: %w", err))
		return
	}
	harm, err := c.sites.GetHarm(ctx, harmQuestion())
	if err != nil {
		to <- prometheus.NewInvalidMetric(blockedDesc, fmt.Errorf("the site does not answer: %w", err))
		return
	}
	said, err := c.sites.GetForecasts(ctx, &kithv1.GetForecastsRequest{})
	if err != nil {
		to <- prometheus.NewInvalidMetric(forecasts[0].desc, fmt.Errorf("the site does not answer: %w", err))
		return
	}
	tellForecasts(to, said)
	if harm.GetCounters().GetMeasured() {
		tellHarm(to, harm)
	}
	tell(to, own, site.GetSite())
	tell(to, counters, site.GetCounters())
	for _, s := range list.GetSites() {
		tell(to, []figure[*kithv1.Site]{reachable}, s, s.GetId())
		if s.GetLoadTime() != nil {
			tell(to, loaded, s, s.GetId())
		}
		for _, h := range s.GetHosts() {
			tell(to, hosts, h, s.GetId(), h.GetNode())
		}
	}
}

func tell[T any](to chan<- prometheus.Metric, figures []figure[T], from T, labels ...string) {
	for _, f := range figures {
		to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.of(from), labels...)
	}
}
