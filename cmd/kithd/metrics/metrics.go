// Package metrics serves figures of a site to Prometheus, in its text format: what
// SiteService tells of the site and of those that it knows, and what the daemon uses of
// its machine.
package metrics

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	kithv1 "kith/proto/gen/kith/v1"
)

// Sites answers as the service does.
type Sites interface {
	GetSite(context.Context, *kithv1.GetSiteRequest) (*kithv1.GetSiteResponse, error)
	ListSites(context.Context, *kithv1.ListSitesRequest) (*kithv1.ListSitesResponse, error)
	GetForecasts(context.Context, *kithv1.GetForecastsRequest) (*kithv1.GetForecastsResponse, error)
	GetHarm(context.Context, *kithv1.GetHarmRequest) (*kithv1.GetHarmResponse, error)
}

// Path is where the figures are.
const Path = "/metrics"

const (
	// wait bounds an answer, and each part of a request.
	wait = 5 * time.Second
	// silence is how long a connection may say nothing before it makes room for another.
	silence = time.Second
	// atOnce is how many requests are answered at a time; more hear 503. Each looks into
	// the engine four times at most.
	atOnce = 2
	// connections is how many are open; more wait.
	connections = 16
	// maxHeader bounds a request, in bytes; nothing is read of its body.
	maxHeader = 8 << 10
)

// Server returns a server of a site's figures, and of more. [Listener] bounds what it is given.
func Server(sites Sites, more ...prometheus.Collector) *http.Server {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(more...)
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &collector{sites})
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: atOnce, Timeout: wait,
	}))
	return &http.Server{Handler: mux, ReadHeaderTimeout: silence, ReadTimeout: wait, WriteTimeout: 2 * wait, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader}
}

// Listener bounds the connections of a listener.
func Listener(l net.Listener) net.Listener { return netutil.LimitListener(l, connections) }
