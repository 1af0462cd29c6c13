package api

import (
	"fmt"

	"kith/internal/places"
)

// enter takes a place for a call from an address. What is in them is named in the plural.
// The error wraps [ErrBusy].
func enter(p *places.Places, what, host string) error {
	switch p.Enter(host) {
	case places.InAll:
		return fmt.Errorf("%d %s: %w", p.Most, what, ErrBusy)
	case places.OfOne:
		return fmt.Errorf("%d %s from %s: %w", p.MostOne, what, host, ErrBusy)
	}
	return nil
}
