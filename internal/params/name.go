package params

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds on parameters.
const (
	MaxParameters = 256
	MaxNameLength = 64
	// MaxRowBytes bounds a row: the line of a table without its end, or the values of a
	// row together.
	MaxRowBytes = 64 << 10
)

// IndexName is how templates name the index of the task, unless a parameter has the name.
const IndexName = "index"

var (
	// ErrBadName is returned for what cannot name a parameter.
	ErrBadName = errors.New("a parameter's name is 1 to 64 letters without accents, digits and '_', and does not begin with a digit")
	// ErrBadNames is returned for names that cannot stand beside one another.
	ErrBadNames = errors.New("a bag has at most 256 parameters, whose names differ by more than upper and lower case: KITH_PARAM_NAME has the value of name")
	// ErrBadValue is returned for a value that no command or variable can have.
	ErrBadValue = errors.New("a value is UTF-8 without zero bytes, and those of a row have at most 65536 bytes together")
)

// CheckName returns an error wrapping [ErrBadName] if name cannot name a parameter.
func CheckName(name string) error {
	bad := len(name) == 0 || len(name) > MaxNameLength || name[0] >= '0' && name[0] <= '9'
	for i := 0; i < len(name) && !bad; i++ {
		c := name[i]
		bad = (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_'
	}
	if bad {
		return fmt.Errorf("parameter %q: %w", clip(name), ErrBadName)
	}
	return nil
}

// checkNames returns what is wrong with the names of all parameters of a bag.
func checkNames(names []string) error {
	if len(names) > MaxParameters {
		return fmt.Errorf("%d parameters: %w", len(names), ErrBadNames)
	}
	upper := make(map[string]string, len(names))
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return err
		}
		if earlier, taken := upper[strings.ToUpper(name)]; taken {
			return fmt.Errorf("parameters %q and %q: %w", earlier, name, ErrBadNames)
		}
		upper[strings.ToUpper(name)] = name
	}
	return nil
}

// checkValues returns what is wrong with the values of a row.
func checkValues(names, values []string) error {
	total := 0
	for i, v := range values {
		if strings.IndexByte(v, 0) >= 0 {
			return fmt.Errorf("the value of %s, %q, has a zero byte: %w", names[i], clip(v), ErrBadValue)
		}
		if !utf8.ValidString(v) {
			return fmt.Errorf("the value of %s, %q, is not UTF-8: %w", names[i], clip(v), ErrBadValue)
		}
		if total += len(v); total > MaxRowBytes {
			return fmt.Errorf("the values up to that of %s have %d bytes: %w", names[i], total, ErrBadValue)
		}
	}
	return nil
}

// known lists the names that a template may use, for an error.
func known(names []string) string {
	const most = 20
	list := slices.Clone(names[:min(len(names), most)])
	if len(names) > most {
		list = append(list, fmt.Sprintf("%d others", len(names)-most))
	}
	if !slices.Contains(names, IndexName) {
		list = append(list, IndexName)
	}
	return strings.Join(list, ", ")
}

// clip shortens a text from outside before it goes into an error.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
