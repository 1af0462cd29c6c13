package daemon

import (
	"context"
	"time"

	"kith/internal/pause"
	"kith/internal/scarce"
)

const (
	// roomLook is how often a member that leads looks whether its disk has room for new jobs.
	roomLook = time.Second
	// handOverPause is how long a member that has handed the lead over for lack of room keeps it when it has
	// it again: the disks of all may be full.
	handOverPause = 10 * time.Minute
)

// handOverWhenFull hands the lead over when the disk of this member has no room for new jobs: it would refuse
// them all, while others have room. check looks at the disk. It returns when ctx ends.
func (m *Member) handOverWhenFull(ctx context.Context, check func() error) {
	for pause.For(ctx, roomLook) {
		err := check()
		if !scarce.Full(err) || len(m.raft.Members()) < 2 || time.Since(m.handedOver) < handOverPause {
			continue
		}
		m.handedOver = time.Now()
		m.log.Warn("this member hands the lead over, as its disk has no room for new jobs", "error", err.Error(), "remedy", "free space on the disk of its data folder")
		if err := m.raft.Transfer(); err != nil {
			m.log.Warn("no other member took the lead", "error", err.Error())
		}
	}
}
