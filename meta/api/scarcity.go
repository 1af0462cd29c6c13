package api

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"kith/internal/scarce"
	"kith/store/blobstore"
)

// scarcityEvery is how often the log tells of calls that failed because the machine
// has run out of something.
const scarcityEvery = 10 * time.Second

// hostScarce is what the callers see of them. Its error is not in the way of theirs.
var hostScarce = kind{code: codes.Unavailable, reason: "HOST_SCARCE", retry: 5 * time.Second}

// scarcityStatus is what a caller is told whose call failed because this machine has
// run out of something for now; nil if it failed for another reason. The call says
// nothing about what it was about: not that an input is bad, nor that an output is gone.
func (s *Server) scarcityStatus(method string, err error) error {
	if !scarce.Passes(err) || errors.Is(err, ErrNotDurable) || errors.Is(err, ErrStopping) {
		return nil
	}
	if held, ok := s.scarcities.Pass(struct{}{}, time.Now(), scarcityEvery); ok {
		s.log.Warn("machine has run out of something; callers are asked to try again", "method", method, "error", err.Error(), "calls", held+1)
	}
	if scarce.Full(err) {
		full := &kind{code: codes.ResourceExhausted, reason: "DISK_FULL", retry: time.Minute}
		if errors.Is(err, blobstore.ErrDiskFull) {
			return full.status(err) // it says how full, and what helps
		}
		return full.status(fmt.Errorf("%w: free space on the disks of the site", blobstore.ErrDiskFull))
	}
	return hostScarce.status(fmt.Errorf("site's machine has run out of something for now: %s; try again", scarce.Errno(err)))
}
