package daemon

import (
	"errors"
	"log/slog"
	"testing"

	"kith/meta"
)

// The last room on the disk is for what was taken before: a new bag is refused there as a
// new job is, and what ends something is not.
func TestNewWorkIsRefusedWithoutRoom(t *testing.T) {
	full := errors.New("the disk is full")
	in := newInbox(0, func() error { return full }, slog.New(slog.DiscardHandler))
	for _, ev := range []meta.Event{meta.Submit{}, meta.SubmitBag{}} {
		if err := in.refuses(ev); !errors.Is(err, full) {
			t.Errorf("%T: %v", ev, err)
		}
	}
	for _, ev := range []meta.Event{meta.Cancel{}, meta.CancelBag{}, meta.HoldBag{}} {
		if err := in.refuses(ev); err != nil {
			t.Errorf("%T: %v", ev, err)
		}
	}
}
