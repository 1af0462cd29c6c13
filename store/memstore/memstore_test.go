package memstore_test

import (
	"testing"

	"kith/store"
	"kith/store/memstore"
	"kith/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		var disk memstore.Disk
		return func(t *testing.T) store.Backend {
			b, err := memstore.Open(&disk, "alpha", 5)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
	})
}
