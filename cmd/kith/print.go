package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// printMessage prints the answer of a verb: the message as JSON, or the text.
func (c *client) printMessage(m proto.Message, text func() string) error {
	if !c.JSON() {
		return c.Write(text())
	}
	b, err := compactJSON(m)
	if err != nil {
		return err
	}
	return c.WriteJSON(b)
}

// printLine prints one message of many as a line of JSON.
func (c *client) printLine(m proto.Message) error {
	b, err := compactJSON(m)
	if err != nil {
		return err
	}
	return c.Write(string(b) + "\n")
}

// printTogether prints messages as one JSON object with the fields of all of them.
func (c *client) printTogether(messages ...proto.Message) error {
	b, err := jsonTogether(messages)
	if err != nil {
		return err
	}
	return c.WriteJSON(b)
}

// printLineTogether is printTogether in one line.
func (c *client) printLineTogether(messages ...proto.Message) error {
	b, err := jsonTogether(messages)
	if err != nil {
		return err
	}
	return c.Write(string(b) + "\n")
}

func jsonTogether(messages []proto.Message) ([]byte, error) {
	together := make(map[string]json.RawMessage)
	for _, m := range messages {
		b, err := compactJSON(m)
		if err == nil {
			err = json.Unmarshal(b, &together)
		}
		if err != nil {
			return nil, err
		}
	}
	return json.Marshal(together)
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
