package daemon

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"kith/internal/durable"
	"kith/internal/pathkind"
	"kith/meta/api"
)

// saltName is the file in the data folder with the salt of the numbers that stand for users.
const saltName = "history.salt"

// saltFile keeps what api.Node.Salt returns. It is made when it is first needed. The random
// bits that name the data folder would not do: other sites are told those.
type saltFile struct {
	mu   sync.Mutex
	path string
	// shared says that other machines of the site have the file, too, so that none is made.
	shared bool
	salt   []byte // as it was read or made, nil before
}

// get returns the salt. One that is made is durable first: nothing is told by a salt that a
// crash could take back.
func (f *saltFile) get() ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.salt != nil {
		return f.salt, nil
	}
	salt, err := f.read()
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.shared:
		err = fmt.Errorf("%w: copy it from the member that the site was founded with", err)
	case errors.Is(err, fs.ErrNotExist):
		salt, err = f.make()
	}
	if err != nil {
		return nil, fmt.Errorf("salt of the history: %w", err)
	}
	f.salt = salt
	return salt, nil
}

func (f *saltFile) read() ([]byte, error) {
	if err := pathkind.File(f.path); err != nil { // a pipe would be waited for
		return nil, err
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	if info.Size() != api.SaltBytes {
		return nil, fmt.Errorf("%s has %d bytes instead of %d: put it back from a copy, or remove it and users get other numbers from now on", f.path, info.Size(), api.SaltBytes)
	}
	return os.ReadFile(f.path)
}

func (f *saltFile) make() ([]byte, error) {
	salt := make([]byte, api.SaltBytes)
	rand.Read(salt)
	return salt, durable.WriteFile(f.path, salt)
}
