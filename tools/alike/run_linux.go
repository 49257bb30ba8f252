// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

const (
	atNull          = 0       // ends the auxiliary vector
	atRandom        = 25      // its entry with the address of the 16 random bytes
	addrNoRandomize = 0x40000 // of personality(2)
)

// run runs a program to its end, and returns its exit code. If mounts is not empty, it reads that file in place of
// what the kernel tells it about its mounts.
func run(seed uint64, mounts string, args []string) (int, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return 0, err
	}
	all, err := read(path)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	runtime.LockOSThread() // which alone may trace what it has started, and whose addresses only its children inherit
	if _, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, addrNoRandomize, 0, 0); errno != 0 {
		return 0, fmt.Errorf("the kernel does not leave out random addresses: %w", errno)
	}
	c := exec.Command(path, args[1:]...)
	c.Env = environment(os.Environ())
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &unix.SysProcAttr{Ptrace: true, Pdeathsig: unix.SIGKILL}
	if err := c.Start(); err != nil {
		return 0, fmt.Errorf("start %s so that its memory can be changed (ptrace): %w", path, err)
	}
	err = stopped(c.Process.Pid)
	if err == nil && mounts != "" {
		err = overMount(c.Process.Pid, mounts)
	}
	if err == nil {
		err = prepare(c.Process.Pid, seed, all)
	}
	if err != nil {
		_ = c.Process.Kill()
		return 0, errors.Join(err, c.Wait())
	}
	if err := c.Wait(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			return 0, err
		}
		if exit.ExitCode() < 0 {
			fmt.Fprintln(os.Stderr, "alike:", path, "ended by", exit)
			return 1, nil
		}
		return exit.ExitCode(), nil
	}
	return 0, nil
}

// environment has goroutines run on one processor, where none is interrupted, and memory neither collected nor sampled,
// which changes the draws of others. What would take all of the machine's memory is collected, and so no longer alike.
func environment(of []string) []string {
	debug := "asyncpreemptoff=1,memprofilerate=0"
	if own := os.Getenv("GODEBUG"); own != "" {
		debug = own + "," + debug
	}
	return append(of, "GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=4GiB", "GODEBUG="+debug)
}

// stopped waits until a program stands before its first instruction.
func stopped(pid int) error {
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
		return fmt.Errorf("wait for the program's start: %w", err)
	}
	if !status.Stopped() || status.StopSignal() != unix.SIGTRAP {
		return fmt.Errorf("the program did not stop at its start: its status is %#x", status)
	}
	return nil
}

// overMount puts a file over what the kernel tells a program about its mounts: the numbers in there are the machine's,
// and so is how long its lines are.
func overMount(pid int, file string) error {
	for _, at := range []string{fmt.Sprintf("/proc/%d/mountinfo", pid),
		fmt.Sprintf("/proc/%d/task/%d/mountinfo", pid, pid)} {
		if err := unix.Mount(file, at, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("put %s over %s: %w", file, at, err)
		}
	}
	return nil
}

// prepare changes the memory of a program that stands before its first instruction, and lets it go.
func prepare(pid int, seed uint64, all []write) error {
	at, err := randomBytes(pid)
	if err != nil {
		return err
	}
	generator := rand.New(rand.NewPCG(seed, 25))
	var random []byte
	for range 2 {
		random = binary.LittleEndian.AppendUint64(random, generator.Uint64()|1) // zeros would mean that there are none
	}
	if _, err := unix.PtracePokeData(pid, at, random); err != nil {
		return fmt.Errorf("write the random bytes: %w", err)
	}
	for _, p := range all {
		if _, err := unix.PtracePokeText(pid, uintptr(p.at), p.code); err != nil {
			return fmt.Errorf("write code at %#x: %w", p.at, err)
		}
	}
	if err := unix.PtraceDetach(pid); err != nil {
		return fmt.Errorf("let the program go: %w", err)
	}
	return nil
}

// randomBytes finds where the kernel has put the random bytes of a program.
func randomBytes(pid int) (uintptr, error) {
	vector, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		return 0, err
	}
	for ; len(vector) >= 16; vector = vector[16:] {
		switch binary.LittleEndian.Uint64(vector) {
		case atNull:
			return 0, errors.New("the kernel gives no random bytes")
		case atRandom:
			return uintptr(binary.LittleEndian.Uint64(vector[8:])), nil
		}
	}
	return 0, errors.New("the kernel gives no random bytes")
}
