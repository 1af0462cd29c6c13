package api

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	kithv1 "kith/proto/gen/kith/v1"
)

var _ kithv1.FileServiceServer = (*Server)(nil)

// UploadFile implements kithv1.FileServiceServer.
func (s *Server) UploadFile(g grpc.ClientStreamingServer[kithv1.UploadFileRequest, kithv1.UploadFileResponse]) error {
	select {
	case s.uploads <- struct{}{}:
	default:
		return fmt.Errorf("%d uploads: %w", cap(s.uploads), ErrBusy)
	}
	defer func() { <-s.uploads }()
	id, err := s.Files.Upload(g.Context(), &uploadReader{g: g})
	if err != nil {
		return err
	}
	return g.SendAndClose(&kithv1.UploadFileResponse{UploadId: id.String(), SizeBytes: id.Size})
}

// uploadReader reads the bytes of an upload stream.
type uploadReader struct {
	g    grpc.ClientStreamingServer[kithv1.UploadFileRequest, kithv1.UploadFileResponse]
	rest []byte
}

// Read implements io.Reader.
func (u *uploadReader) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		r, err := u.g.Recv()
		if errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		u.rest = r.GetData()
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}
