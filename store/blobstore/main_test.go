package blobstore

import (
	"os"
	"testing"

	"kith/internal/scratch"
)

func TestMain(m *testing.M) {
	scratch.InMemory()
	os.Exit(m.Run())
}
