package wan

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestAsk(t *testing.T) {
	p, err := Start(Config{
		Control: "127.0.0.1:0", Links: []LinkConfig{{From: "a", To: "b", Listen: "127.0.0.1:0", Target: "127.0.0.1:1"}},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close() //nolint:errcheck // The test is over.
	at := p.ControlAddr().String()
	if text, err := Ask(at, "status"); err != nil || !strings.Contains(text, "a") {
		t.Errorf("status: %q, %v", text, err)
	}
	if _, err := Ask(at, "cut a nowhere"); !errors.Is(err, ErrAnswer) || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a bad command: %v, want ErrAnswer that names it", err)
	}
	if _, err := Ask("nonsense", "status"); err == nil {
		t.Error("a bad address was accepted")
	}
}
