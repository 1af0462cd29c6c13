package config

import (
	"encoding/hex"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"kith/internal/job"
)

// The conditions on texts; each returns what to give instead.

func siteName(v string) string {
	if v == "" {
		return "give the site a name"
	}
	if _, err := job.ParseSiteID(v); err != nil {
		return "give 1 to 32 of a-z, 0-9 and -, beginning with a letter, not ending with -"
	}
	return ""
}

// memberName and clusterID are empty where the site is one machine.
func memberName(v string) string {
	if len(v) > 63 || strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
		return "give 1 to 63 letters, digits and dashes, or leave it out for a site of one machine"
	}
	return ""
}

func clusterID(v string) string {
	if b, err := hex.DecodeString(v); v != "" && (err != nil || len(b) != 16) {
		return "give 32 hexadecimal digits, which kithd members id draws"
	}
	return ""
}

func absolute(v string) string {
	if !filepath.IsAbs(v) {
		return "give an absolute path"
	}
	return ""
}

// maxSocketPath is the longest path that the kernel takes for a socket.
const maxSocketPath = 107

func socketPath(v string) string {
	switch {
	case v == "":
		return ""
	case len(v) > maxSocketPath:
		return "give a path of at most " + strconv.Itoa(maxSocketPath) + " bytes"
	}
	return absolute(v)
}

func allAbsolute(list []string) string {
	for _, p := range list {
		if !filepath.IsAbs(p) {
			return "give absolute paths, " + strconv.Quote(p) + " is none"
		}
	}
	return ""
}

func listenAddress(v string) string { return hostPort(v, 0) }

func metricsAddress(v string) string {
	if v == "" {
		return ""
	}
	if remedy := hostPort(v, 0); remedy != "" {
		return remedy + ", or leave it out"
	}
	if host, _, _ := net.SplitHostPort(v); !IsLoopback(host) {
		return "give an address of loopback, as anyone who reaches it is told; a proxy can let others in"
	}
	return ""
}

func advertised(v string) string {
	if v == "" || v == "none" {
		return ""
	}
	if remedy := hostPort(v, 1); remedy != "" {
		return remedy + `, or "none"`
	}
	if host, _, _ := net.SplitHostPort(v); isWildcard(host) {
		return `give an address that other sites can dial, or "none"`
	}
	return ""
}

func peerAddress(v string) string {
	if v == "" {
		return ""
	}
	if remedy := hostPort(v, 1); remedy != "" {
		return remedy + ", or leave it out for a site that only dials out"
	}
	return ""
}

// hostPort says what to give instead of a text that is not host:port; least is
// the lowest port.
func hostPort(v string, least int) string {
	_, port, err := net.SplitHostPort(v)
	if err != nil {
		return "give host:port"
	}
	if n, err := strconv.Atoi(port); err != nil || n < least || n > 65535 {
		return "give host:port with a port of " + strconv.Itoa(least) + " to 65535"
	}
	return ""
}

func isWildcard(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || (ip != nil && ip.IsUnspecified())
}

// IsLoopback reports whether a host, as an address has it, is this machine and no other.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// same reports whether two addresses have the same host and port. Port 0 is
// any free one.
func same(a, b string) bool {
	hostA, hostB, ok := samePort(a, b)
	return ok && host(hostA) == host(hostB)
}

// host writes a host so that those that are alike are equal.
func host(name string) string {
	if name == "localhost" {
		return "127.0.0.1"
	}
	return strings.ToLower(name)
}

// samePort returns the hosts of two addresses, and whether their ports are one.
func samePort(a, b string) (hostA, hostB string, ok bool) {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	return hostA, hostB, errA == nil && errB == nil && portA == portB && portA != "0"
}

// reaches reports whether a program that dials an address on this machine ends up at listen.
func reaches(address, listen string) bool {
	to, at, ok := samePort(address, listen)
	return ok && (host(to) == host(at) || isWildcard(at) && (IsLoopback(to) || isWildcard(to)))
}
