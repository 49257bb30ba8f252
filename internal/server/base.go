// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"k8s.io/component-base/version"

	"github.com/wherryproject/wherry/internal/door"
	"github.com/wherryproject/wherry/internal/store"
)

func (s *Server) startFolder(context.Context) (err error) {
	if err := makeFolder(s.opts.DataDir); err != nil {
		return err
	}
	if s.parts.files, err = door.NewDescriptors(); err != nil {
		return err
	}
	s.parts.lock, err = lockFolder(s.opts.DataDir)
	return err
}

func (s *Server) stopFolder(context.Context) error {
	return errors.Join(s.parts.lock.release(), s.parts.files.Close())
}

func (s *Server) check(context.Context) error {
	if err := checkFree(s.opts.DataDir); err != nil {
		return err
	}
	if err := checkVersion(s.opts.DataDir, stamp{Format: format, Wherry: Version(), Kubernetes: version.Get().GitVersion}); err != nil {
		return err
	}
	if err := checkAuthority(s.opts.DataDir, time.Now()); err != nil {
		return err
	}
	if s.opts.Join == "" {
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
	s.parts.etcd, err = store.Start(ctx, store.Config{
		Dir: filepath.Join(s.opts.DataDir, "etcd"), Logger: s.log, Quota: s.opts.EtcdQuota, Failed: s.storeFailed, Inspector: s.opts.Inspector,
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
	slow := time.AfterFunc(2*time.Second, func() { s.log.Info("waiting for etcd to answer", "servers", o.EtcdServers, "patience", etcdPatience) })
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
		return &Refusal{Code: ExitDiskFull, What: err.Error(), Do: "free some space there and start the server again; pods keep running in the meantime"}
	}
	return err
}

// storeFailed ends the server, at once: whatever is under way waits for the store.
func (s *Server) storeFailed(err error) {
	s.storeGone.Store(true)
	err = storeRefusal(err)
	s.giveUp(err)
	select {
	case s.failed <- err:
	default: // another part has failed already
	}
}

func (s *Server) stopEtcd(context.Context) error {
	if s.parts.etcd == nil {
		return nil
	}
	return s.parts.etcd.Close()
}
