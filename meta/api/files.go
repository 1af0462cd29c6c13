package api

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"kith/internal/identity"
	"kith/internal/places"
	kithv1 "kith/proto/gen/kith/v1"
)

var _ kithv1.FileServiceServer = (*Server)(nil)

// Bounds of uploads. One that brings less than slowestUpload in uploadPatience gives
// its place up, and so does one whose first byte does not come in firstByteWait.
const (
	mostUploads    = 16
	mostUploadsOne = 12 // of one address
	firstByteWait  = 10 * time.Second
	uploadPatience = 30 * time.Second
	slowestUpload  = 32 << 10
)

// callerHost is what the address that a call comes from counts as, for bounds of its own.
func callerHost(ctx context.Context) string { return places.Sender(identity.From(ctx).Address) }

// UploadFile implements kithv1.FileServiceServer.
func (s *Server) UploadFile(g grpc.ClientStreamingServer[kithv1.UploadFileRequest, kithv1.UploadFileResponse]) error {
	host := callerHost(g.Context())
	if err := enter(&s.uploads, "uploads", host); err != nil {
		return err
	}
	defer s.uploads.Leave(host)
	u := newUploadReader(g)
	defer u.close()
	id, err := s.Files.Upload(g.Context(), u)
	if err != nil {
		return err
	}
	return g.SendAndClose(&kithv1.UploadFileResponse{UploadId: id.String(), SizeBytes: id.Size})
}

// uploadReader reads the bytes of an upload stream, and gives up when they do not come.
type uploadReader struct {
	pieces chan uploadPiece
	done   chan struct{}
	rest   []byte
	// left is how long the reader goes on waiting until enough has come: the time that
	// the site itself takes to store what came is not the upload's fault.
	left  time.Duration
	since int // bytes since left was full
	begun bool
}

type uploadPiece struct {
	data []byte
	err  error
}

func newUploadReader(g grpc.ClientStreamingServer[kithv1.UploadFileRequest, kithv1.UploadFileResponse]) *uploadReader {
	u := &uploadReader{pieces: make(chan uploadPiece), done: make(chan struct{}), left: firstByteWait}
	go func() { // receiving ends with the stream, which ends when its server returns
		for {
			r, err := g.Recv()
			select {
			case u.pieces <- uploadPiece{r.GetData(), err}:
			case <-u.done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return u
}

func (u *uploadReader) close() { close(u.done) }

// Read implements io.Reader.
func (u *uploadReader) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		began := time.Now()
		late := time.NewTimer(u.left)
		select {
		case piece := <-u.pieces:
			late.Stop()
			if piece.err != nil {
				return 0, piece.err
			}
			u.left -= time.Since(began)
			u.rest = piece.data
			u.moved(len(piece.data))
		case <-late.C:
			if !u.begun {
				return 0, fmt.Errorf("%w: no byte came in %v", ErrStalled, firstByteWait)
			}
			return 0, fmt.Errorf("%w: less than %d bytes came in %v", ErrStalled, slowestUpload, uploadPatience)
		}
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

// moved notes that bytes have come.
func (u *uploadReader) moved(bytes int) {
	u.since += bytes
	if first := !u.begun && bytes > 0; first || u.since >= slowestUpload {
		u.begun, u.since, u.left = true, 0, uploadPatience
	}
}
