package transfer

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	kithv1 "kith/proto/gen/kith/v1"
	"kith/store/blobstore"
)

// Encode returns s as a serialized kith.v1.FileSet. An empty set encodes to no
// bytes. It returns an error wrapping [ErrBadSet] if s breaks a rule.
func (s Set) Encode() ([]byte, error) {
	if len(s.Files) == 0 {
		return nil, nil
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.Proto())
	if err != nil {
		return nil, fmt.Errorf("encode file set: %w", err)
	}
	if len(b) > MaxEncodedBytes {
		return nil, tooLong(len(b))
	}
	return b, nil
}

// Proto returns s as a message that shares the contents of s.
func (s Set) Proto() *kithv1.FileSet {
	m := &kithv1.FileSet{Files: make([]*kithv1.File, len(s.Files))}
	for i := range s.Files {
		f := &s.Files[i]
		chunks := make([][]byte, len(f.Chunks))
		for c := range f.Chunks {
			chunks[c] = f.Chunks[c][:]
		}
		m.Files[i] = &kithv1.File{
			Path: f.Path, Executable: f.Executable, SizeBytes: f.Size, Inline: f.Inline, Chunks: chunks,
			OffsetBytes: f.Offset, ContainerBytes: f.Container,
		}
	}
	return m
}

// Decode reads what [Set.Encode] writes, from anyone. It refuses what breaks a
// rule, also a field that it does not know, with an error wrapping
// [ErrBadSet]. It looks at the length and the number of files before it
// allocates.
func Decode(b []byte) (Set, error) {
	if len(b) > MaxEncodedBytes {
		return Set{}, tooLong(len(b))
	}
	if n := countFiles(b); n > MaxFiles {
		return Set{}, fmt.Errorf("files: more than %d: %w: %w", MaxFiles, ErrTooMany, ErrBadSet)
	}
	m := new(kithv1.FileSet)
	if err := proto.Unmarshal(b, m); err != nil {
		return Set{}, fmt.Errorf("not a kith.v1.FileSet: %w", ErrBadSet)
	}
	return FromProto(m)
}

// FromProto returns the set that a message describes, checked as by [Decode].
// It shares the message's contents.
func FromProto(m *kithv1.FileSet) (Set, error) {
	if len(m.GetFiles()) > MaxFiles {
		return Set{}, fmt.Errorf("files: %d of them, at most %d are allowed: %w: %w", len(m.GetFiles()), MaxFiles, ErrTooMany, ErrBadSet)
	}
	if len(m.ProtoReflect().GetUnknown()) > 0 {
		return Set{}, fmt.Errorf("files: followed by a field that this version does not know: %w", ErrBadSet)
	}
	var s Set
	if len(m.GetFiles()) > 0 {
		s.Files = make([]File, len(m.GetFiles()))
	}
	for i, f := range m.GetFiles() {
		if err := s.Files[i].fromProto(i, f); err != nil {
			return Set{}, err
		}
	}
	if err := s.Validate(); err != nil {
		return Set{}, err
	}
	if n := proto.Size(m); n > MaxEncodedBytes {
		return Set{}, tooLong(n)
	}
	return s, nil
}

// fromProto fills in f from the i-th file of a message.
func (f *File) fromProto(i int, m *kithv1.File) error {
	if len(m.ProtoReflect().GetUnknown()) > 0 {
		return bad(i, "path", m.GetPath(), "followed by a field that this version does not know")
	}
	*f = File{
		Path: m.GetPath(), Executable: m.GetExecutable(), Size: m.GetSizeBytes(),
		Container: m.GetContainerBytes(), Offset: m.GetOffsetBytes(),
	}
	if len(m.GetInline()) > 0 {
		f.Inline = m.GetInline()
	}
	if len(m.GetChunks()) == 0 {
		return nil
	}
	f.Chunks = make([]blobstore.Sum, len(m.GetChunks()))
	for c, sum := range m.GetChunks() {
		if len(sum) != len(f.Chunks[c]) {
			return bad(i, "chunks", f.Path, "chunk %d has a name of %d bytes, want %d", c, len(sum), len(f.Chunks[c]))
		}
		copy(f.Chunks[c][:], sum)
	}
	return nil
}

// countFiles counts the files of an encoding, up to one too many, without
// decoding them. It stops where the encoding is broken.
func countFiles(b []byte) int {
	n := 0
	for len(b) > 0 && n <= MaxFiles {
		_, _, size := protowire.ConsumeField(b)
		if size < 0 {
			return n
		}
		b = b[size:]
		n++
	}
	return n
}

// tooLong is the error about an encoding of n bytes.
func tooLong(n int) error {
	return fmt.Errorf("files: %d bytes encoded, at most %d are allowed: %w: %w", n, MaxEncodedBytes, ErrTooLarge, ErrBadSet)
}
