package transfer

import (
	"errors"
)

// Errors of file sets.
var (
	// ErrBadSet is returned when a file set breaks a rule; the text names the
	// field and its value.
	ErrBadSet = errors.New("the file set is not valid")
	// ErrBadPath is returned when a path or pattern breaks a rule.
	ErrBadPath = errors.New("not a path inside a job's folder")
	// ErrTooMany is returned when a set has more files than [MaxFiles].
	ErrTooMany = errors.New("too many files")
	// ErrTooLarge is returned when content is longer than a limit allows.
	ErrTooLarge = errors.New("the content is larger than allowed")
)

// Errors of packing at the origin.
var (
	// ErrNotFound is returned when a source file, an upload, a chunk or an
	// output is not there.
	ErrNotFound = errors.New("not found")
	// ErrOutsideRoot is returned when a source lies outside the allowed
	// folders, or is a link that leads out of them.
	ErrOutsideRoot = errors.New("outside the folders that are allowed for input")
	// ErrNotRegular is returned when a source is a folder, device, pipe or socket.
	ErrNotRegular = errors.New("not a regular file")
	// ErrChanged is returned when a source was written to while it was read.
	ErrChanged = errors.New("the file changed while it was read")
	// ErrBadSource is returned when a source names more than one origin of its content.
	ErrBadSource = errors.New("a file has one content: data, a source path or an upload id")
	// ErrBadUploadID is returned when a text is not an upload id.
	ErrBadUploadID = errors.New("an upload id reads SIZE-SHA256, as UploadFile returned it")
)

// Errors of moving bytes between sites. A [Source] returns them, wrapped or
// not, and so do [Server.ReadChunk] and [Tail.Read]; [ErrNotFound] belongs to
// them too.
var (
	// ErrDenied is returned when the asking site may not read what it asks for.
	ErrDenied = errors.New("the site may not read this")
	// ErrBusy is returned when too much is under way; asking again later helps.
	ErrBusy = errors.New("too many requests under way, ask again")
	// ErrUnavailable is returned by a source whose site cannot be reached now.
	ErrUnavailable = errors.New("the site cannot be reached")
	// ErrGaveUp is returned, with what went wrong last, when a source was asked
	// for a piece for as long as [FetchConfig] has patience. A fetch that begins
	// again later goes on with what is missing then.
	ErrGaveUp = errors.New("gave up")
	// ErrBadReply is returned when a source sends other bytes than asked for.
	ErrBadReply = errors.New("the site sends wrong bytes")
	// ErrBadRange is returned when an offset is negative.
	ErrBadRange = errors.New("an offset must not be negative")
)

// clip shortens a text from outside before it goes into a message.
func clip(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
