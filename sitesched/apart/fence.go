package apart

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kith/internal/durable"
	"kith/internal/scarce"
)

const (
	// fenceName is the file with the latest lead that the machine has followed.
	fenceName = "lead"
	// fenceBlock is the size of each of its two blocks: none has a sector of the disk in common with the other.
	fenceBlock = 4 << 10
)

// fence keeps the number of the latest lead, on disk. Numbers count within one founding of the site's
// members, which has an id. The file has its room from the first on: a full disk must not keep the site from its
// machine whenever another member leads.
type fence struct {
	path    string
	cluster [16]byte
	lead    uint64
	file    *durable.Blocks // nil while the disk has no room to make it
}

// errDeposed is returned for a lead that is over.
var errDeposed = errors.New("a later lead of the site has driven this machine; if the site came back from a backup since, remove the file processors/lead in the data folder of the machine, and start kithd there")

// openFence reads what was kept, and makes the file if need be. A file that cannot be read is an error: it may
// forbid what comes.
func openFence(folder string, cluster [16]byte) (*fence, error) {
	f := &fence{path: filepath.Join(folder, fenceName), cluster: cluster}
	text, err := f.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w: it says which lead of the site was followed last; remove it if no member leads", f.path, err)
	}
	if err == nil {
		if err := f.parse(text); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w: it says which lead of the site was followed last; remove it if no member leads", f.path, err), f.close())
		}
	}
	if f.file == nil {
		if err := f.create(); err != nil && !scarce.Full(err) {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
	}
	return f, nil
}

// read returns what the file has: two blocks or, as it was first, one line.
func (f *fence) read() ([]byte, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	if info.Size() < fenceBlock {
		return os.ReadFile(f.path)
	}
	var text []byte
	f.file, text, err = durable.OpenBlocks(f.path, fenceBlock)
	return text, err
}

func (f *fence) parse(text []byte) error {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var id string
	var lead uint64
	if _, err := fmt.Sscanf(string(line), "%32s %d", &id, &lead); err != nil {
		return err
	}
	if id == hex.EncodeToString(f.cluster[:]) {
		f.lead = lead
	}
	return nil
}

func (f *fence) line(lead uint64) []byte { return fmt.Appendf(nil, "%x %d\n", f.cluster, lead) }

func (f *fence) create() (err error) {
	if err := durable.CreateBlocks(f.path, fenceBlock, f.line(f.lead)); err != nil {
		return err
	}
	f.file, _, err = durable.OpenBlocks(f.path, fenceBlock)
	return err
}

// pass lets a lead pass unless a later one has, and keeps it.
func (f *fence) pass(lead uint64) error {
	if lead < f.lead || lead == 0 {
		return errDeposed
	}
	if lead == f.lead {
		return nil
	}
	if err := f.keep(lead); err != nil {
		return fmt.Errorf("the number of the lead cannot be kept: %w", err)
	}
	f.lead = lead
	return nil
}

func (f *fence) keep(lead uint64) error {
	if f.file == nil {
		if err := f.create(); err != nil {
			return err
		}
	}
	return f.file.Write(f.line(lead))
}

func (f *fence) close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
