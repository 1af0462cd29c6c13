package transfer

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"kith/internal/job"
	"kith/store/blobstore"
)

// ServeConfig says what a site serves to its peers.
type ServeConfig struct {
	// Allowed returns the files of an attempt that peer may read: its inputs if
	// peer holds the claim, its outputs if peer is the origin. It returns
	// ErrNotFound or ErrDenied otherwise. It is called from several goroutines.
	Allowed func(ctx context.Context, peer job.SiteID, attempt job.AttemptID) (Set, error)
	// PeerRequests is how many requests of one peer are served at a time;
	// more are answered with ErrBusy. Zero means 16, as many as a fetcher
	// keeps in flight.
	PeerRequests int
	// Attempts is how many answers of Allowed are kept. Zero means 256.
	Attempts int
	// KeepFor is how long one is kept. Zero means 30 s.
	KeepFor time.Duration
	// OpenChunks is how many verified chunks stay open. Zero means 16.
	OpenChunks int
}

// A Server reads chunks for peers. A peer learns nothing of a chunk that does
// not belong to an attempt it shares with this site, not even whether it is
// there. Its methods may be called from any goroutine.
type Server struct {
	members *memberships
	chunks  *openChunks
	limit   int

	mu   sync.Mutex
	busy map[job.SiteID]int
}

// NewServer returns a server of the chunks in store. The caller closes it.
func NewServer(store *blobstore.Store, config ServeConfig) *Server {
	or := func(n, standard int) int {
		if n <= 0 {
			return standard
		}
		return n
	}
	if config.KeepFor <= 0 {
		config.KeepFor = 30 * time.Second
	}
	return &Server{
		members: newMemberships(config.Allowed, or(config.Attempts, 256), config.KeepFor),
		chunks:  newOpenChunks(store, or(config.OpenChunks, 16)),
		limit:   or(config.PeerRequests, 16),
		busy:    make(map[job.SiteID]int),
	}
}

// ReadChunk returns the bytes of a chunk from offset on, at most limit and at
// most [MaxPieceBytes] (also for a limit of 0 or less), and whether the chunk
// ends with them. The caller owns the bytes. It returns [ErrDenied] if the
// chunk is not of a file of attempt that peer may read, [ErrBusy] if peer asks
// too much at a time, [ErrNotFound] if the chunk is gone, [ErrBadRange],
// ctx's error, or one of the file system.
func (s *Server) ReadChunk(ctx context.Context, peer job.SiteID, attempt job.AttemptID, sum blobstore.Sum, offset int64, limit int) (data []byte, end bool, err error) {
	if !s.enter(peer) {
		return nil, false, ErrBusy
	}
	defer s.leave(peer)
	if offset < 0 {
		return nil, false, fmt.Errorf("offset %d: %w", offset, ErrBadRange)
	}
	member, err := s.members.has(ctx, peer, attempt, sum)
	if err != nil {
		return nil, false, err
	}
	if !member {
		return nil, false, fmt.Errorf("chunk %s for %s: %w", sum.Short(), attempt, ErrDenied)
	}
	return s.chunks.read(sum, offset, limit)
}

// FileAt returns a reader of a file of the store, for as long as the server is open, which
// shares the open chunks with peers. The file is valid. Its ReadAt returns [ErrNotFound] if a chunk is gone.
func (s *Server) FileAt(f File) io.ReaderAt { return fileAt{s.chunks, f} }

// Forget drops what the server remembers of an attempt, for all peers. To be
// called when a peer loses its right to the attempt's files.
func (s *Server) Forget(attempt job.AttemptID) {
	s.members.forget(func(a job.AttemptID) bool { return a == attempt })
}

// ForgetJob is Forget for all attempts of a job: somebody else may hold it now, or nobody.
func (s *Server) ForgetJob(id job.ID) {
	s.members.forget(func(a job.AttemptID) bool { return a.Job == id })
}

// Close closes the chunks that are kept open. No call is under way any more.
func (s *Server) Close() error { return s.chunks.close() }

// enter counts a request of peer, unless it has too many.
func (s *Server) enter(peer job.SiteID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[peer] >= s.limit {
		return false
	}
	s.busy[peer]++
	return true
}

// leave ends a request of peer.
func (s *Server) leave(peer job.SiteID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[peer]--; s.busy[peer] == 0 {
		delete(s.busy, peer)
	}
}
