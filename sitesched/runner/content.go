package runner

import (
	"errors"
	"fmt"
	"io"

	"kith/internal/scarce"
	"kith/meta/api"
	"kith/meta/transfer"
)

// ReadFile implements api.Files.
func (f *Files) ReadFile(file transfer.File, offset int64) ([]byte, bool, error) {
	if offset >= file.Size {
		return nil, true, nil
	}
	if len(file.Chunks) == 0 {
		return file.Inline[offset:], true, nil
	}
	data := make([]byte, min(transfer.MaxPieceBytes, file.Size-offset))
	n, err := f.server.FileAt(file).ReadAt(data, offset)
	if scarce.Passes(err) || scarce.OfHost(err) {
		return nil, false, fmt.Errorf("output %q: %w", file.Path, err) // it is there
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("output %q: %w: %w", file.Path, api.ErrNoOutput, err)
	}
	return data[:n], offset+int64(n) >= file.Size, nil
}
