package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// format is what --output chooses.
type format string

// The formats.
const (
	table  format = "table"
	asJSON format = "json"
)

func parseFormat(s string) (format, error) {
	switch f := format(s); f {
	case table, asJSON:
		return f, nil
	}
	return "", fmt.Errorf("choose table or json")
}

// json reports whether the user wants JSON.
func (c *cli) json() bool { return c.format.value == asJSON }

// print prints the answer of a verb: the message as JSON, or the text.
func (c *cli) print(m proto.Message, text func() string) error {
	if !c.json() {
		return c.write(text())
	}
	b, err := compactJSON(m)
	if err != nil {
		return err
	}
	return c.writeJSON(b)
}

// printValue is print for an answer that is no message.
func (c *cli) printValue(v any, text func() string) error {
	if !c.json() {
		return c.write(text())
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.writeJSON(b)
}

// printLine prints one message of many as a line of JSON.
func (c *cli) printLine(m proto.Message) error {
	b, err := compactJSON(m)
	if err != nil {
		return err
	}
	return c.write(string(b) + "\n")
}

func (c *cli) writeJSON(b []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return err
	}
	return c.write(out.String() + "\n")
}

// compactJSON writes a message as proto JSON. Fields without a value are
// written too, so that programs find them; messages that are not set are not.
// protojson varies its blanks from build to build, hence Compact.
func compactJSON(m proto.Message) ([]byte, error) {
	b, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("answer cannot be written as JSON: %w", err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// write prints to stdout.
func (c *cli) write(text string) error {
	if _, err := io.WriteString(c.stdout, text); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}
