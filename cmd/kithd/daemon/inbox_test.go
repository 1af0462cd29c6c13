package daemon

import (
	"errors"
	"log/slog"
	"syscall"
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

// While nothing can be written, to cancel gets through all the same: what is cancelled may be
// what fills the disk.
func TestCancelGetsThroughWithoutADisk(t *testing.T) {
	in := newInbox(0, nil, slog.New(slog.DiscardHandler))
	in.trouble.note(syscall.ENOSPC)
	for _, ev := range []meta.Event{meta.Cancel{}, meta.CancelBag{}} {
		if err := in.refuses(ev); err != nil || in.cancelTroubled(ev) == nil {
			t.Errorf("%T: %v, and waits for no disk", ev, err)
		}
	}
	for _, ev := range []meta.Event{meta.Submit{}, meta.SubmitBag{}, meta.Hold{}, meta.HoldBag{}} {
		if err := in.refuses(ev); !errors.Is(err, syscall.ENOSPC) || in.cancelTroubled(ev) != nil {
			t.Errorf("%T: %v", ev, err)
		}
	}
}
