package daemon

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A site tells Prometheus how it is, and no longer once it has stopped.
func TestFiguresOfASite(t *testing.T) {
	t.Parallel()
	c := testConfig(t, "alpha")
	c.Listen.Metrics = "127.0.0.1:0"
	s := startSite(t, c)
	url := "http://" + s.d.figuresAt.Addr().String() + "/metrics"
	client := http.Client{Timeout: time.Minute}
	get := func() (string, error) {
		r, err := client.Get(url)
		if err != nil {
			return "", err
		}
		defer r.Body.Close() //nolint:errcheck // It was read.
		body, err := io.ReadAll(r.Body)
		return string(body), err
	}
	body, err := get()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`kith_site_processors{site="alpha"} 2`, `kith_site_reachable{site="alpha"} 1`, "kith_jobs_submitted_total 0"} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("it does not tell %s: %s", want, body)
		}
	}
	if err := s.d.Close(); err != nil {
		t.Fatal(err)
	}
	s.d = nil
	if body, err := get(); err == nil {
		t.Errorf("a site that has stopped answers %s", body)
	}
}
