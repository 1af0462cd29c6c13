package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Format is what --output chooses.
type Format string

// The formats.
const (
	Table Format = "table"
	JSON  Format = "json"
)

func parseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case Table, JSON:
		return f, nil
	}
	return "", errors.New("choose table or json")
}

// JSON reports whether the user wants JSON.
func (p *Program) JSON() bool { return p.format.Value == JSON }

// Print prints the answer of a verb: the value as JSON, or the text.
func (p *Program) Print(v any, text func() string) error {
	if !p.JSON() {
		return p.Write(text())
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return p.WriteJSON(b)
}

// WriteJSON prints JSON, indented.
func (p *Program) WriteJSON(b []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return err
	}
	return p.Write(out.String() + "\n")
}

// Write prints to stdout.
func (p *Program) Write(text string) error {
	if _, err := io.WriteString(p.Stdout, text); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}
