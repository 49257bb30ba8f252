// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// journal is a file on the node in which the containers of a pod write down what happens to them, one line each:
// nanoseconds, who, what. It outlives pod and node, and its times are exact, which a status' are not.
type journal struct{ path, who string }

func (j journal) tell(what string, args ...any) {
	line := fmt.Sprintf("%d %s %s\n", time.Now().UnixNano(), j.who, fmt.Sprintf(what, args...))
	f, err := os.OpenFile(j.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err == nil {
		_, err = io.WriteString(f, line) // one write: lines of several writers do not mix
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tool:", err)
	}
	fmt.Print(line)
}

// lives counts how often this actor has started.
func (j journal) lives() int { return j.count("start") }

// count counts how often this actor has told something.
func (j journal) count(what string) int {
	text, _ := os.ReadFile(j.path) // none yet: never
	return strings.Count(string(text), " "+j.who+" "+what+"\n")
}

// file is a file beside the journal by which a test directs an actor: NAME.sick, NAME.go.
func (j journal) file(kind string) string {
	return filepath.Join(filepath.Dir(j.path), j.who+"."+kind)
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// act plays a container as its flags say, and keeps a journal of it.
func act(args []string) error {
	f := flag.NewFlagSet("act", flag.ContinueOnError)
	wait := f.Duration("wait", 0, "how long it takes to come up, before it serves")
	until := f.Bool("until", false, "end with -code when NAME.go is there")
	over := f.Duration("for", 0, "end with -code after this time")
	code := f.Int("code", 0, "exit code of -until and -for")
	crash := f.Int("crash", 0, "end with code 1 at once, this many times")
	term := f.Duration("term", 0, "how long it takes to heed a stop signal")
	termCode := f.Int("termcode", 0, "exit code after a stop signal")
	deaf := f.Bool("deaf", false, "heed no stop signal")
	serving := f.String("serve", "",
		"http, https, tcp or grpc, a colon and a port: healthy while NAME.sick is not there")
	memory := f.Int("alloc", 0, "MiB to take")
	every := f.Duration("tick", 0, "how often to tell a tick")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 2 {
		return errors.New("act [FLAGS] JOURNAL NAME")
	}
	j := journal{f.Arg(0), f.Arg(1)}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGWINCH)
	if err := j.alone(); err != nil {
		return err
	}
	j.tell("start")
	j.tell("in-%s", sandbox())
	if j.lives() <= *crash {
		j.tell("crash")
		os.Exit(1)
	}
	memoryHeld := slices.Repeat([]byte{1}, *memory<<20)
	time.Sleep(*wait)
	j.tell("up")
	if *serving != "" {
		if err := j.serve(*serving); err != nil {
			return err
		}
	}
	var end <-chan time.Time
	if *over > 0 {
		end = time.After(*over)
	}
	var ticks <-chan time.Time
	if *every > 0 {
		ticks = time.Tick(*every)
	}
	var look <-chan struct{}
	if *until {
		var err error
		if look, err = j.changes(); err != nil {
			return err
		}
	}
	for {
		select {
		case s := <-signals:
			j.tell("%s", signalName(s))
			if *deaf {
				continue
			}
			time.Sleep(*term)
			*code = *termCode
		case <-end:
		case <-ticks:
			j.tell("tick")
			continue
		case <-look:
			if !there(j.file("go")) {
				continue
			}
		}
		j.tell("end")
		runtime.KeepAlive(memoryHeld)
		os.Exit(*code)
	}
}

// sandbox names the pod's sandbox, by the file that the runtime made for it and mounts into each container.
func sandbox() string {
	text, _ := os.ReadFile("/proc/self/mountinfo") // no reason to fail: the name is for comparing only
	for line := range strings.SplitSeq(string(text), "\n") {
		f := strings.Fields(line)
		if len(f) > 4 && (f[4] == "/etc/resolv.conf" || f[4] == "/etc/hostname") {
			return filepath.Base(filepath.Dir(f[3]))[:12]
		}
	}
	return "unknown"
}

// alone takes a lock that the kernel gives back when this process is gone: two instances of a container at once would
// show.
func (j journal) alone() error {
	lock, err := syscall.Open(j.file("lock"), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o666) // never closed
	if err != nil {
		return err
	}
	if err := syscall.Flock(lock, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		j.tell("DOUBLE")
		return err
	}
	return nil
}

func signalName(s os.Signal) string {
	names := map[os.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGINT: "INT", syscall.SIGQUIT: "QUIT",
		syscall.SIGHUP: "HUP", syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2", syscall.SIGWINCH: "WINCH"}
	return names[s]
}

// healthy is for exec probes: it ends with 1 while NAME.sick is there. With -tell every try is written down.
func healthy(args []string) error {
	f := flag.NewFlagSet("healthy", flag.ContinueOnError)
	as := f.String("tell", "", "what to write down")
	hang := f.Duration("hang", 0, "how long to think when sick")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 2 {
		return errors.New("healthy [FLAGS] JOURNAL NAME")
	}
	j := journal{f.Arg(0), f.Arg(1)}
	sick := there(j.file("sick"))
	if *as != "" {
		j.tell("%s", *as)
	}
	if sick {
		time.Sleep(*hang)
		return fmt.Errorf("%s is sick", j.who)
	}
	return nil
}

// tell is for hooks: it writes WHAT down, and WHAT-done when it is over. With -after it is over when something is
// written down anew.
func tell(args []string) error {
	f := flag.NewFlagSet("tell", flag.ContinueOnError)
	long := f.Duration("for", 0, "how long it takes")
	after := f.String("after", "", "wait until NAME tells this once more")
	code := f.Int("code", 0, "exit code")
	kill := f.Bool("term1", false, "send SIGTERM to PID 1 at the end")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 3 {
		return errors.New("tell [FLAGS] JOURNAL NAME WHAT")
	}
	j := journal{f.Arg(0), f.Arg(1)}
	before := j.count(*after)
	j.tell("%s", f.Arg(2))
	time.Sleep(*long)
	if *after != "" {
		changed, err := j.changes()
		if err != nil {
			return err
		}
		for j.count(*after) == before {
			<-changed
		}
	}
	j.tell("%s-done", f.Arg(2))
	if *kill {
		if err := syscall.Kill(1, syscall.SIGTERM); err != nil {
			return err
		}
	}
	os.Exit(*code)
	return nil
}
