// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/wherryproject/wherry/internal/pki"
	"github.com/wherryproject/wherry/internal/runtime/network"
)

// minFree is the free space without which a server does not start for the first time: etcd's log alone takes 64 MiB
// ahead of time.
const minFree = 256 << 20

func checkRoot(euid int, why string) error {
	if euid == 0 {
		return nil
	}
	return &Refusal{Code: ExitNotRoot, What: why, Do: "run it with sudo"}
}

// startFree is the least for a server whose folder has a store already: it evicts what fills the disk.
const startFree = 4 << 20

// checkFree refuses a disk on which a server cannot start.
func (s *Server) checkFree() error {
	dir := s.opts.DataDir
	free, err := freeBytes(dir)
	if err != nil {
		return folderRefusal(dir, err)
	}
	_, err = os.Stat(filepath.Join(dir, stampName))
	return enough(dir, free, err == nil)
}

func freeBytes(dir string) (int64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail) * fs.Bsize, nil
}

// enough refuses too little room: a new server lays out its files, one that was here before only has to come up and
// make room. (Pure.)
func enough(dir string, free int64, before bool) error {
	need := int64(minFree)
	if before {
		need = startFree
	}
	if free >= need {
		return nil
	}
	return &Refusal{Code: ExitDiskFull,
		What: fmt.Sprintf("only %d MiB are free for the data folder %s; at least %d MiB are needed", free>>20, dir,
			need>>20),
		Do: "free some space or choose another --data-dir"}
}

// AwaitRoom returns when a server can start again on a data folder whose disk is full, or with ctx's error: at once if
// the reserve is there, which the next start is to have, as what fills the disk may be pods that only it can evict. The
// disk notifies nobody when room comes; it is asked every second. Of starts that ended since the disk had too little
// room for them there were vain; the next one has to wait, as what they lacked is not known.
func AwaitRoom(ctx context.Context, dataDir string, vain int, log *slog.Logger) error {
	if vain > 0 {
		newReserve(dataDir, log).measured(0) // what was lacking is not known: the next start has all that there is
		log.Warn("waiting until there is room on the disk; pods keep running in the meantime", "starts", vain)
		select {
		case <-time.After(vainPause(vain)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for logged := vain > 0; ; logged = true {
		free, err := freeBytes(dataDir)
		if err == nil && free < startFree {
			newReserve(dataDir, log).measured(free)
			free, err = freeBytes(dataDir)
		}
		if err != nil {
			return folderRefusal(dataDir, err)
		}
		lack := enough(dataDir, free, true)
		if lack == nil {
			return nil
		}
		if !logged {
			log.Warn("waiting until there is room on the disk; pods keep running in the meantime", "err", lack)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// vainPause is how long to wait after so many starts in vain: the time that one takes, and longer when the disk stays
// full. (Pure.)
func vainPause(vain int) time.Duration { return time.Duration(min(vain, 10)) * time.Second }

// checkAuthority refuses to start with a CA that nobody can trust at this time: everything would run, and nobody could
// connect. A folder without a CA is given one later; what else may be wrong with it is reported then.
func checkAuthority(dataDir string, now time.Time) error {
	ca, err := pki.Load(PKI(dataDir))
	if err != nil {
		return nil
	}
	bad, is := errors.AsType[*pki.ValidityError](ca.ValidAt(now))
	switch {
	case !is:
		return nil
	case bad.Early():
		return &Refusal{Code: ExitAuthority, What: fmt.Sprintf("%v (%s)", bad, PKI(dataDir)),
			Do: "set the clock; if it is right, create a new CA with: wherry certs rotate --data-dir " + dataDir}
	}
	return &Refusal{Code: ExitAuthority, What: fmt.Sprintf("%v (%s), and nobody could connect", bad, PKI(dataDir)),
		Do: "create a new CA with: wherry certs rotate --data-dir " + dataDir +
			"; then start the server again; kubeconfigs and agents that have the former CA need the new one"}
}

// checkPort refuses a port that somebody listens on. Port 0 (any free one) is always fine.
func checkPort(ip string, port int, flag string) error {
	if port == 0 {
		return nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
	if err == nil {
		return errors.Join(l.Close(), checkForwarded(ip, port, flag))
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return &Refusal{Code: ExitPortTaken, What: fmt.Sprintf("cannot listen on %s",
			net.JoinHostPort(ip, strconv.Itoa(port))),
			Do: "check the address and " + flag, Err: err}
	}
	by := ""
	if who := listener("/proc", port); who != "" {
		by = " by " + who
	}
	return &Refusal{Code: ExitPortTaken, What: fmt.Sprintf("port %d of %s is taken%s", port, ip, by),
		Do: fmt.Sprintf("stop that program or choose another %s", flag)}
}

// checkForwarded refuses a port that a pod has as its host port: nobody would reach the server. It is no reason against
// a start that the rules cannot be read, as on a machine without any.
func checkForwarded(ip string, port int, flag string) error {
	at, err := netip.ParseAddr(ip)
	if err != nil {
		return nil
	}
	to, err := network.Forwarded(at, uint16(port))
	if err != nil || !to.IsValid() {
		return nil
	}
	return &Refusal{Code: ExitPortTaken,
		What: fmt.Sprintf("port %d is the host port of a pod: what comes to it is forwarded to %s", port, to),
		Do:   fmt.Sprintf("choose another %s, or start the server with the one it had before and delete the pod", flag)}
}

// listener names the process that listens on a TCP port, as "nginx (pid 7)"; empty when it is not known.
func listener(proc string, port int) string {
	inode := ""
	for _, table := range []string{"net/tcp", "net/tcp6"} {
		text, err := os.ReadFile(filepath.Join(proc, table))
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(text), "\n") {
			f := strings.Fields(line) // sl local_address rem_address st ... inode
			if len(f) > 9 && f[3] == "0A" && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				inode = f[9]
			}
		}
	}
	if inode == "" {
		return ""
	}
	links, _ := filepath.Glob(filepath.Join(proc, "[0-9]*/fd/*"))
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == "socket:["+inode+"]" {
			dir := filepath.Dir(filepath.Dir(link))
			name, _ := os.ReadFile(filepath.Join(dir, "comm"))
			return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), filepath.Base(dir))
		}
	}
	return ""
}
