package metrics

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kithv1 "kith/proto/gen/kith/v1"
)

// known answers with what it has, or not at all.
type known struct {
	site  *kithv1.Site
	count *kithv1.SiteCounters
	sites []*kithv1.Site
	harm  *kithv1.GetHarmResponse
	said  *kithv1.GetForecastsResponse
	err   error
}

func (k *known) GetSite(context.Context, *kithv1.GetSiteRequest) (*kithv1.GetSiteResponse, error) {
	return &kithv1.GetSiteResponse{Site: k.site, Counters: k.count}, k.err
}

func (k *known) ListSites(context.Context, *kithv1.ListSitesRequest) (*kithv1.ListSitesResponse, error) {
	return &kithv1.ListSitesResponse{Sites: k.sites}, k.err
}

func (k *known) GetHarm(context.Context, *kithv1.GetHarmRequest) (*kithv1.GetHarmResponse, error) {
	return k.harm, k.err
}

func (k *known) GetForecasts(context.Context, *kithv1.GetForecastsRequest) (*kithv1.GetForecastsResponse, error) {
	return k.said, k.err
}

func get(t *testing.T, sites Sites, method, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	Server(sites).Handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(body)
}

func TestFigures(t *testing.T) {
	now := timestamppb.New(time.Unix(1_800_000_000, 0))
	alpha := &kithv1.Site{
		Id: "alpha", Reachability: kithv1.Site_REACHABILITY_SELF, Processors: 8, FreeProcessors: 3, QueuedCopies: 2, RunningAttempts: 5, LoadWorkSeconds: 1.5,
		LoadTime: now, Draining: true, KeyTrouble: "it ends soon", CertificateExpireTime: now,
	}
	sites := &known{
		said: &kithv1.GetForecastsResponse{
			Enabled: true, Starts: []*kithv1.ForecastRecord{{Class: "all", Forecasts: 10, Held: 7.5, Earlier: 2, Later: 0.5, PinballSeconds: 12}, {Class: "above 6 h"}},
			Runs: []*kithv1.ForecastRecord{{Class: "all", Forecasts: 3, Held: 1}},
		},
		harm: &kithv1.GetHarmResponse{
			Time: now, ShadowTime: timestamppb.New(time.Unix(1_799_999_990, 0)), Jobs: &kithv1.HarmFigures{DelaySeconds: -2},
			Counters: &kithv1.HarmCounters{Measured: true, LeftCopies: []int64{5, 1, 0, 2, 0, 1}, BlockedSeconds: 99, Violations: 3, BlockedNow: 4},
		},
		site: alpha, count: &kithv1.SiteCounters{JobsSubmitted: 7, WaitSeconds: 0.25},
		sites: []*kithv1.Site{
			alpha,
			{Id: "beta", Reachability: kithv1.Site_REACHABILITY_CONNECTED, Processors: 4, LoadTime: now, LoadAge: durationpb.New(3 * time.Second), NotStarting: true, Hosts: []*kithv1.HostStanding{
				{HeldBack: true, ErrorRate: 0.75, TurnaroundSeconds: 60, RecentDone: 2, RecentFailed: 6.5, Quota: 0.5}, {Node: "n2"},
			}},
			{Id: "gamma", Reachability: kithv1.Site_REACHABILITY_UNREACHABLE},
		},
	}
	code, body := get(t, sites, http.MethodGet, Path)
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, body)
	}
	for _, want := range []string{
		`kith_site_processors{site="alpha"} 8`, `kith_site_processors_free{site="alpha"} 3`, `kith_site_copies_queued{site="alpha"} 2`, `kith_site_attempts_running{site="alpha"} 5`,
		`kith_site_load_work_seconds{site="alpha"} 1.5`, `kith_site_draining{site="alpha"} 1`, `kith_site_draining{site="beta"} 0`, `kith_site_load_age_seconds{site="beta"} 3`,
		`kith_site_not_starting{site="beta"} 1`, `kith_site_reachable{site="alpha"} 1`, `kith_site_reachable{site="beta"} 1`, `kith_site_reachable{site="gamma"} 0`,
		`kith_key_trouble 1`, `kith_disk_trouble 0`, `kith_certificate_expire_timestamp_seconds 1.8e+09`,
		`kith_host_held_back{node="",site="beta"} 1`, `kith_host_held_back{node="n2",site="beta"} 0`, `kith_host_error_ratio{node="",site="beta"} 0.75`,
		`kith_host_turnaround_seconds{node="",site="beta"} 60`, `kith_host_tasks_done_recent{node="",site="beta"} 2`, `kith_host_tasks_failed_recent{node="",site="beta"} 6.5`,
		`kith_host_quota_tasks{node="",site="beta"} 0.5`, `kith_jobs_submitted_total 7`, `kith_wait_seconds_total 0.25`,
		`kith_home_promises_moved_total 0`, `kith_home_delay_violations_total 3`, `kith_home_blocked_jobs 4`, `kith_home_delay_seconds -2`, `kith_home_shadow_lag_seconds 10`,
		`kith_home_blocked_seconds_bucket{le="0"} 5`, `kith_home_blocked_seconds_bucket{le="3600"} 8`, `kith_home_blocked_seconds_bucket{le="+Inf"} 9`, `kith_home_blocked_seconds_sum 99`,
		`kith_forecast_ranges{class="all",of="starts"} 10`, `kith_forecast_ranges_held{class="all",of="starts"} 7.5`, `kith_forecast_ranges_early{class="all",of="starts"} 2`,
		`kith_forecast_ranges_late{class="all",of="starts"} 0.5`, `kith_forecast_pinball_loss_seconds{class="all",of="starts"} 12`, `kith_forecast_ranges_held{class="all",of="runs"} 1`,
		"# TYPE kith_jobs_submitted_total counter", "# TYPE kith_host_held_back gauge", "process_resident_memory_bytes", "go_goroutines",
	} {
		if !strings.Contains(body, want+"\n") && !strings.Contains(body, want+" ") {
			t.Errorf("it does not tell %s", want)
		}
	}
	if strings.Contains(body, `class="above 6 h"`) {
		t.Error("it tells of a class without forecasts")
	}
	if strings.Contains(body, `kith_site_processors{site="gamma"}`) {
		t.Error("it tells of a load that nobody has heard")
	}
}

// A site that does not answer has no figures: without them it would look idle.
func TestSiteThatDoesNotAnswer(t *testing.T) {
	code, body := get(t, &known{err: errors.New("the loop is jammed")}, http.MethodGet, Path)
	if code != http.StatusInternalServerError || !strings.Contains(body, "the site does not answer: the loop is jammed") || strings.Contains(body, "kith_site") {
		t.Errorf("%d: %s", code, body)
	}
}

func TestNothingElseIsServed(t *testing.T) {
	for _, c := range []struct {
		method, path string
		code         int
	}{{http.MethodGet, "/", http.StatusNotFound}, {http.MethodPost, Path, http.StatusMethodNotAllowed}, {http.MethodGet, "/debug/pprof/", http.StatusNotFound}} {
		if code, _ := get(t, &known{}, c.method, c.path); code != c.code {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, code, c.code)
		}
	}
}
