package pause

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !For(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("waited %v, want a minute", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if For(ctx, time.Hour) || time.Since(began) != time.Second {
			t.Errorf("waited %v for a context of one second", time.Since(began))
		}
		if !For(t.Context(), -1) {
			t.Error("no pause at all was cut short")
		}
	})
}
