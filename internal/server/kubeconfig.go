// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/pki"
)

// startKubeconfigs writes the administrator's kubeconfig, and again before its certificate ends.
func (s *Server) startKubeconfigs(context.Context) error {
	owed := newOwed(s.log, s.writeKubeconfigs)
	renewing, err := pki.NewRenewing("kubeconfig", s.log, func() (cert, key []byte, err error) {
		text, err := s.parts.api.AdminKubeconfig()
		if err != nil {
			return nil, nil, err
		}
		if err := owed.put(text); err != nil {
			return nil, nil, err
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(text)
		if err != nil {
			return nil, nil, err
		}
		return config.CertData, config.KeyData, nil
	})
	if err != nil {
		return err
	}
	s.parts.kubeconfig = spawn("kubeconfig", s.failed, func(ctx context.Context) error {
		var both sync.WaitGroup
		both.Go(func() { owed.run(ctx) })
		renewing.Run(ctx)
		both.Wait()
		return nil
	})
	return nil
}

func (s *Server) stopKubeconfigs(ctx context.Context) error { return s.parts.kubeconfig.stop(ctx) }

// writeKubeconfigs writes the administrator's kubeconfig into the data folder and where the user wants it.
func (s *Server) writeKubeconfigs(text []byte) error {
	who, err := s.opts.kubeconfigAccess()
	if err != nil {
		return err
	}
	own, path := who, s.opts.WriteKubeconfig
	if path != "" {
		own = onlyRoot
	}
	if err := writeFileFor(datadir.Kubeconfig(s.opts.DataDir), text, own); err != nil {
		return folderRefusal(s.opts.DataDir, err)
	}
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("--write-kubeconfig: %w", err)
	}
	if err := writeFileFor(path, text, who); err != nil {
		return fmt.Errorf("--write-kubeconfig: %w", err)
	}
	return nil
}

// access is who may read a file.
type access struct {
	mode os.FileMode
	gid  int // -1: that of the server's process
}

var onlyRoot = access{0o600, -1}

// kubeconfigAccess is who may read the administrator's kubeconfig by --write-kubeconfig-mode and --write-kubeconfig-group.
func (o Options) kubeconfigAccess() (access, error) {
	a := onlyRoot
	if o.KubeconfigGroup != "" {
		gid, err := groupID(o.KubeconfigGroup)
		if err != nil {
			return a, fmt.Errorf("--write-kubeconfig-group: %w", err)
		}
		a = access{0o640, gid}
	}
	if o.KubeconfigMode != "" {
		mode, err := strconv.ParseUint(o.KubeconfigMode, 8, 32)
		if err != nil || mode > 0o777 {
			return a, fmt.Errorf("--write-kubeconfig-mode: %q is not a file mode, for example 640", o.KubeconfigMode)
		}
		switch {
		case mode&0o600 != 0o600:
			return a,
				fmt.Errorf("--write-kubeconfig-mode: %s does not allow root to read and write the file; the first digit must be 6", o.KubeconfigMode)
		case mode&0o022 != 0:
			return a,
				fmt.Errorf("--write-kubeconfig-mode: with %s other users could write to the file; the other digits must be 4 at most", o.KubeconfigMode)
		case mode&0o111 != 0:
			return a,
				fmt.Errorf("--write-kubeconfig-mode: %s makes a program of the file; digits must be even, for example 640", o.KubeconfigMode)
		}
		a.mode = os.FileMode(mode)
	}
	return a, nil
}

// groupID is the id of a group, given by its name or its number.
func groupID(group string) (int, error) {
	if gid, err := strconv.Atoi(group); err == nil && gid >= 0 {
		return gid, nil
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		return 0, fmt.Errorf("there is no group %q on this machine: create it with groupadd, or use another", group)
	}
	return strconv.Atoi(g.Gid)
}
