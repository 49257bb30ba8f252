// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"k8s.io/component-base/version"

	"github.com/wherryproject/wherry/internal/connlimit"
	"github.com/wherryproject/wherry/internal/release"
	"github.com/wherryproject/wherry/internal/store"
)

func (s *Server) startFolder(context.Context) (err error) {
	if err := makeFolder(s.opts.DataDir); err != nil {
		return err
	}
	if s.parts.files, err = connlimit.NewDescriptors(); err != nil {
		return err
	}
	s.parts.reserve = newReserve(s.opts.DataDir, s.log)
	if free, err := freeBytes(s.opts.DataDir); err == nil {
		s.parts.reserve.measured(free) // on a full disk not even the lock can be written
	}
	if s.parts.lock, err = lockFolder(s.opts.DataDir); err != nil {
		return err
	}
	if err := sweepUnfinished(s.opts.DataDir); err != nil {
		s.log.Warn("files that a killed server had begun to write could not be removed", "err", err)
	}
	return nil
}

func (s *Server) stopFolder(context.Context) error {
	return errors.Join(s.parts.lock.release(), s.parts.files.Close())
}

func (s *Server) check(context.Context) error {
	if err := s.checkFree(); err != nil {
		return err
	}
	if err := checkVersion(s.opts.DataDir, stamp{Format: format, Wherry: release.Version(),
		Kubernetes: version.Get().GitVersion}); err != nil {
		return err
	}
	if err := checkAuthority(s.opts.DataDir, time.Now()); err != nil {
		return err
	}
	if !s.opts.agentOnly() {
		if err := checkPort(s.opts.BindAddress, s.opts.SecurePort, "--secure-port"); err != nil {
			return err
		}
	}
	return checkPort(s.opts.KubeletAddress, s.opts.KubeletPort, "--kubelet-port")
}

func (s *Server) startEtcd(ctx context.Context) (err error) {
	if len(s.opts.EtcdServers) > 0 {
		return s.awaitEtcd(ctx)
	}
	if err := s.checkLost(); err != nil {
		return err
	}
	dir := filepath.Join(s.opts.DataDir, "etcd")
	if s.parts.freshStore {
		if err := s.beginStore(ctx, dir); err != nil {
			return storeRefusal(err)
		}
	}
	_, unmarked := os.Stat(storeMark(s.opts.DataDir))
	s.parts.etcd, err = store.Start(ctx, store.Config{
		Dir: dir, Logger: s.log, Quota: s.opts.EtcdQuota, Failed: s.storeFailed, Inspector: s.opts.Inspector,
		Had: unmarked == nil,
	})
	if damage, ok := errors.AsType[*store.DamageError](err); ok {
		return damaged(s.opts.DataDir, s.snapshotFolder(), damage)
	}
	return storeRefusal(err)
}

// etcdPatience is how long an external etcd may take to answer, as when both are started at once.
const etcdPatience = 20 * time.Second

func (s *Server) awaitEtcd(ctx context.Context) error {
	o := s.opts
	ctx, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	slow := time.AfterFunc(2*time.Second,
		func() { s.log.Info("waiting for etcd to answer", "servers", o.EtcdServers, "patience", etcdPatience) })
	defer slow.Stop()
	x := store.External{Servers: o.EtcdServers, CAFile: o.EtcdCAFile, CertFile: o.EtcdCertFile, KeyFile: o.EtcdKeyFile}
	if err := x.Await(ctx); err != nil {
		return &Refusal{Code: 1, What: err.Error(), Do: "start it, or check --etcd-servers and the certificates"}
	}
	return nil
}

func storeRefusal(err error) error {
	switch {
	case errors.Is(err, store.ErrLocked):
		return &Refusal{Code: ExitFolderLocked, What: err.Error()}
	case errors.Is(err, store.ErrDiskFull):
		return &Refusal{Code: ExitDiskFull, What: err.Error(),
			Do: "free some space there and start the server again; pods keep running in the meantime"}
	case errors.Is(err, store.ErrDiskFailed):
		return &Refusal{Code: ExitStore, What: err.Error(),
			Do: "nothing that was acknowledged is lost; see what the kernel says of the disk (dmesg), " +
				"repair or replace it, and start the server again; pods keep running in the meantime"}
	}
	return err
}

// storeFailed ends the server, at once: whatever is under way waits for the store. One that was ready and whose disk is
// full can go on after another start, which takes up the reserve and evicts what fills the disk.
func (s *Server) storeFailed(err error) {
	s.storeGone.Store(true)
	again := errors.Is(err, store.ErrDiskFull) && closed(s.ready)
	if err = storeRefusal(err); again {
		err = &AgainError{Err: err}
	}
	s.giveUp(err)
	select {
	case s.failed <- err:
	default: // another part has failed already
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *Server) stopEtcd(context.Context) error {
	if s.parts.etcd == nil {
		return nil
	}
	return s.parts.etcd.Close()
}
