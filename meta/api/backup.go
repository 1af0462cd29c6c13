package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"kith/internal/identity"
	kithv1 "kith/proto/gen/kith/v1"
)

// ErrBackupTime is returned when a backup takes too long: the image that it is made of keeps room
// in the file of facts from being used again.
var ErrBackupTime = errors.New("the backup took longer than ten minutes and was given up")

const (
	backupTime = 10 * time.Minute
	// backupPiece is how many bytes of a backup go into one message.
	backupPiece = 256 << 10
)

// BackupSite implements kithv1.SiteServiceServer.
func (s *Server) BackupSite(_ *kithv1.BackupSiteRequest, stream grpc.ServerStreamingServer[kithv1.BackupSiteResponse]) error {
	ctx := stream.Context()
	if identity.From(ctx).Proof != identity.PeerCredential {
		return ErrNotOperator
	}
	if err := enter(&s.backups, "backups", ""); err != nil {
		return err
	}
	s.told(ctx, "backup begun")
	ctx, cancel := context.WithTimeout(ctx, backupTime)
	defer cancel()
	done := make(chan error, 1)
	go func() { // a client that takes nothing holds up a send until this call has ended
		defer s.backups.Leave("")
		done <- s.Backup(&backupStream{ctx, stream})
	}()
	select {
	case err := <-done:
		if err == nil {
			s.told(ctx, "backup made")
		}
		return err
	case <-ctx.Done():
		if stream.Context().Err() != nil {
			return stream.Context().Err()
		}
		return ErrBackupTime
	}
}

// backupStream writes to a stream.
type backupStream struct {
	ctx context.Context
	to  grpc.ServerStreamingServer[kithv1.BackupSiteResponse]
}

var _ io.Writer = (*backupStream)(nil)

// Write implements io.Writer.
func (w *backupStream) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		if err := w.ctx.Err(); err != nil {
			return n, err
		}
		piece := b[:min(len(b), backupPiece)]
		if err := w.to.Send(&kithv1.BackupSiteResponse{Data: piece}); err != nil {
			return n, fmt.Errorf("to whoever asked for the backup: %w", err)
		}
		n, b = n+len(piece), b[len(piece):]
	}
	return n, nil
}
