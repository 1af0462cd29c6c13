package executor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

var errNoBootID = errors.New("this machine does not tell when it was booted")

// readBootID returns a text that changes when the machine is restarted.
func readBootID() (string, error) {
	if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		if id := strings.TrimSpace(string(b)); id != "" {
			return id, nil
		}
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoBootID, err)
	}
	for line := range bytes.Lines(stat) {
		if at, ok := bytes.CutPrefix(line, []byte("btime ")); ok {
			return "btime-" + string(bytes.TrimSpace(at)), nil
		}
	}
	return "", errNoBootID
}

// startTicks returns when process pid started, in clock ticks since boot, and
// false if there is no such process.
func startTicks(pid int) (uint64, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The fields are counted from the end of the name, which may hold anything.
	i := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[i+1:])
	const startTime = 22 - 3
	if i < 0 || len(fields) <= startTime {
		return 0, false
	}
	ticks, err := strconv.ParseUint(string(fields[startTime]), 10, 64)
	return ticks, err == nil
}

// openProcess returns a handle on process pid if it is the one that started at
// ticks and has not ended. The check comes after the handle is there, so that a
// number that was reused in between is noticed.
func openProcess(pid int, ticks uint64) (int, bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, false
	}
	now, ok := startTicks(pid)
	if !ok || now != ticks || hasEnded(fd) {
		_ = unix.Close(fd)
		return -1, false
	}
	return fd, true
}

// hasEnded reports whether the process behind a pidfd is over, reaped or not.
func hasEnded(pidfd int) bool {
	poll := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, 0)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}

// pidOf returns the number of the process behind a pidfd, and false once it is over.
func pidOf(pidfd int) (int, bool) {
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(pidfd))
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(info) {
		if field, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
			pid, err := strconv.Atoi(string(bytes.TrimSpace(field)))
			return pid, err == nil && pid > 0
		}
	}
	return 0, false
}

// hostName is the machine's name without its domain.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	name, _, _ = strings.Cut(name, ".")
	return name
}
