package shim

import (
	"syscall"
	"unsafe"
)

// Commands of the System V control calls that tell how many objects exist in
// the IPC namespace, as <linux/msg.h>, <linux/sem.h> and <linux/shm.h> number them.
const (
	msgInfo = 12
	shmInfo = 14
	semInfo = 19
)

// leftoverIPC reports whether the IPC namespace holds any System V object.
// Only the field that counts objects is read; the rest makes up the size.
func leftoverIPC() bool {
	var shm struct {
		used int32
		_    [44]byte
	}
	var sem struct {
		_    [7]int32
		used int32
		_    [2]int32
	}
	var msg struct {
		used int32
		_    [28]byte
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_SHMCTL, 0, shmInfo, uintptr(unsafe.Pointer(&shm)))
	_, _, _ = syscall.RawSyscall6(syscall.SYS_SEMCTL, 0, 0, semInfo, uintptr(unsafe.Pointer(&sem)), 0, 0)
	_, _, _ = syscall.RawSyscall(syscall.SYS_MSGCTL, 0, msgInfo, uintptr(unsafe.Pointer(&msg)))
	return shm.used != 0 || sem.used != 0 || msg.used != 0
}
