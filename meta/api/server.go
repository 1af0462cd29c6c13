package api

import (
	"context"
	"io"
	"log/slog"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/internal/loglines"
	"kith/internal/places"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
)

// ScriptPath is the name of a job's script among its input files.
const ScriptPath = ".kith/script"

// A job that writes checkpoints has its folder for them beneath its private one. DoneName is
// the file there that says that all others are written.
const (
	CheckpointFolder = ".kith/checkpoint"
	DoneName         = "DONE"
)

// Files keeps the files of submitters at this site.
type Files interface {
	// Pack makes the set of a job's inputs.
	Pack(ctx context.Context, inputs []transfer.Input) (transfer.Set, error)
	// ReadFile returns the next bytes of a file that is kept here from offset on, at most
	// [transfer.MaxPieceBytes], and whether nothing follows.
	ReadFile(f transfer.File, offset int64) (data []byte, end bool, err error)
	// Uploaded opens a file that was uploaded, of at most most bytes, which stays until ctx is
	// done.
	Uploaded(ctx context.Context, id string, most int64) (transfer.File, io.ReaderAt, error)
	// Upload stores what r has.
	Upload(ctx context.Context, r io.Reader) (transfer.UploadID, error)
}

// Output reads what jobs write, wherever they run.
type Output interface {
	// Read returns the next bytes of a file of a job from offset on, at most
	// [transfer.MaxPieceBytes] and fewer only at the end of what there is, and
	// whether nothing will ever follow. While the job runs it waits up to wait
	// for something to come; no bytes and not the end means: there is no more
	// at the moment. Attempt 0 is the job's attempt at the moment; of earlier ones there are
	// stdout and stderr, if they ended with the job to go on. It returns errors wrapping
	// [ErrNoOutput] or [ErrHostAway].
	Read(ctx context.Context, a job.AttemptID, path string, offset int64, wait time.Duration) (data []byte, end bool, err error)
}

// Config is what a [Server] is made of.
type Config struct {
	Node    Node
	Files   Files
	Output  Output
	Changes *Changes
	// BagChanges remembers which bags changed.
	BagChanges *Changes
	// Trust decides which sites are trusted; nil at a site without keys.
	Trust Trust
	// Members are the machines of the site; nil where it is one.
	Members Members
	// Backup writes a backup of the facts that are durable now.
	Backup func(w io.Writer) error
	// User is recorded as the user of a job whose submitter did not prove who they
	// are, see [identity.Caller].
	User   string
	Logger *slog.Logger
}

// Server serves JobService, BagService, SiteService, FileService and TrustService.
type Server struct {
	kithv1.UnimplementedJobServiceServer
	kithv1.UnimplementedBagServiceServer
	kithv1.UnimplementedSiteServiceServer
	kithv1.UnimplementedFileServiceServer
	kithv1.UnimplementedTrustServiceServer
	Config
	log *slog.Logger
	// uploads bounds how many files are taken in at a time, readers how many are read, tables
	// how many of those that were uploaded are looked at.
	uploads, readers, tables, backups places.Places
	shown                             shown
	// reckoned is what guests cost, as it was told last.
	reckoned reckoned
	// scarcities bounds what the log tells of a machine that has run out of something.
	scarcities loglines.Pacer[struct{}]
}

// New returns a server.
func New(cfg Config) *Server {
	return &Server{
		Config: cfg, log: cfg.Logger,
		uploads: places.Places{Most: mostUploads, MostOne: mostUploadsOne},
		readers: places.Places{Most: mostReaders, MostOne: mostReadersOne},
		tables:  places.Places{Most: mostTables, MostOne: mostTablesOne}, backups: places.Places{Most: 1, MostOne: 1}, reckoned: newReckoned(),
	}
}

// told logs what a caller had the site do, with who the caller is.
func (s *Server) told(ctx context.Context, what string, args ...any) {
	c := identity.From(ctx)
	s.log.Info(what, append([]any{"actor", c.Actor.String(), "from", c.Address}, args...)...)
}

// protoUnknown returns the number of the first unknown field.
func protoUnknown(b []byte) (protowire.Number, protowire.Type, int) {
	return protowire.ConsumeTag(b)
}
