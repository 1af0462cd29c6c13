package main

import (
	"context"
	"errors"
	"io"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

const (
	// maxInline is how many bytes of input travel within the submission.
	maxInline = 512 << 10
	// uploadPiece is how many bytes of other files travel at a time.
	uploadPiece = 256 << 10
)

// send returns the inputs as a submission names them: small files with their
// content, as many as fit, the others after an upload.
func (c *client) send(ctx context.Context, s *site, in *inputFiles) ([]*kithv1.InputFile, error) {
	sent := make([]*kithv1.InputFile, 0, len(in.files))
	inline := int64(0)
	for _, f := range in.files {
		m := &kithv1.InputFile{Path: f.path, Executable: f.executable}
		sent = append(sent, m)
		if f.size <= maxInline-inline {
			content, err := f.read()
			if err != nil {
				return nil, cli.Refusedf("--input %s: %v", f.local, err)
			}
			m.Content = &kithv1.InputFile_Data{Data: content}
			inline += f.size
			continue
		}
		id, err := c.upload(ctx, s, "--input "+f.local, func() (io.ReadCloser, error) { return f.open() })
		if err != nil {
			return nil, err
		}
		m.Content = &kithv1.InputFile_UploadId{UploadId: id}
	}
	return sent, nil
}

// upload brings one file to the site, and begins again while the site cannot be reached or
// has too much to do. What is how the user named the file.
func (c *client) upload(ctx context.Context, s *site, what string, open func() (io.ReadCloser, error)) (id string, err error) {
	_, err = c.persist(ctx, func(ctx context.Context) (err error) {
		id, err = c.uploadOnce(ctx, s, what, open)
		return err
	})
	return id, err
}

// uploadOnce is one try of upload. It takes as long as it takes while it goes on.
func (c *client) uploadOnce(ctx context.Context, s *site, what string, open func() (io.ReadCloser, error)) (string, error) {
	allProcessors()
	ctx, heard, stop := c.deadline(ctx)
	defer stop()
	file, err := open()
	if err != nil {
		return "", cli.Refusedf("%s: %v", what, err)
	}
	defer file.Close() //nolint:errcheck // Only read from.
	stream, err := s.files.UploadFile(ctx)
	if err != nil {
		return "", silence(ctx, err)
	}
	total := int64(0)
	piece := make([]byte, uploadPiece)
	for {
		n, err := io.ReadFull(file, piece)
		if n > 0 {
			if sendErr := stream.Send(&kithv1.UploadFileRequest{Data: piece[:n]}); sendErr != nil {
				break // CloseAndRecv says why
			}
			total += int64(n)
			heard(c.timeout)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return "", cli.Refusedf("%s: %v", what, plain(err))
		}
	}
	r, err := stream.CloseAndRecv()
	switch {
	case err != nil:
		return "", silence(ctx, err)
	case r.GetSizeBytes() != total:
		return "", cli.Refusedf("%s: the site has stored %d of %d bytes; try again", what, r.GetSizeBytes(), total)
	}
	return r.GetUploadId(), nil
}
