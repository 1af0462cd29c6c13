package wan

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// ErrAnswer is returned when a proxy answers a command with an error.
var ErrAnswer = errors.New("the network refuses the command")

// Ask sends a command to the control address of a proxy, written as in
// [Config], and returns the text of its answer.
func Ask(address, command string) (string, error) {
	network, at, err := controlAddress(address)
	if err != nil {
		return "", fmt.Errorf("control %q: %w", address, err)
	}
	conn, err := net.DialTimeout(network, at, replyTimeout)
	if err != nil {
		return "", fmt.Errorf("control: %w", err)
	}
	defer conn.Close() //nolint:errcheck // All was said.
	if err := conn.SetDeadline(time.Now().Add(replyTimeout)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(conn, command); err != nil {
		return "", fmt.Errorf("control: %w", err)
	}
	var text strings.Builder
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		line := lines.Text()
		if line == "ok" {
			return text.String(), nil
		}
		if reason, bad := strings.CutPrefix(line, "error: "); bad {
			return text.String(), fmt.Errorf("%q: %w: %s", command, ErrAnswer, reason)
		}
		text.WriteString(line + "\n")
	}
	return "", fmt.Errorf("control: the answer to %q is cut off", command)
}
