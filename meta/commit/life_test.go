package commit

import (
	"errors"
	"testing"

	"kith/store"
)

// A daemon that cannot write down that it starts does not start.
func TestBeginLifeIsDurable(t *testing.T) {
	d := &disk{}
	facts := store.NewState("alpha", 1)
	if err := BeginLife(facts, d, store.BeginLife{}); err != nil || d.committed != 1 || facts.Dirty() {
		t.Errorf("committed %d, %v", d.committed, err)
	}
	d.full = errors.New("full")
	if err := BeginLife(facts, d, store.BeginLife{}); !errors.Is(err, d.full) {
		t.Errorf("began without a disk: %v", err)
	}
	if err := BeginLife(facts, nil, store.BeginLife{}); err != nil || facts.Dirty() {
		t.Errorf("without a sealer: %v", err)
	}
}
