// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/pki"
)

// PKI is where a server or agent with this data folder keeps its certificates and keys.
func PKI(dataDir string) string { return filepath.Join(dataDir, "pki") }

// ServerURL is where the server of a data folder was last reached by its administrator's kubeconfig.
func ServerURL(dataDir string) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", datadir.Kubeconfig(dataDir))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("there is no %s: start the server once to create it", datadir.Kubeconfig(dataDir))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", datadir.Kubeconfig(dataDir), err)
	}
	return config.Host, nil
}

// RotateCertificates puts a new CA and a new key of service account tokens in place of those of a data folder, with
// what was signed before still good, or, to finish, ends that; see pki.RotateAll. No server may run on the folder. The
// administrator's kubeconfig is written anew. It reports whether anything changed.
func RotateCertificates(dataDir string, finish bool) (changed bool, err error) {
	if err := checkRoot(os.Geteuid(), "only root can change keys"); err != nil {
		return false, err
	}
	if !ours(dataDir) {
		return false, &Refusal{Code: ExitFolder, What: fmt.Sprintf("%s is not the data folder of a wherry server",
			dataDir), Do: "check --data-dir; nothing was changed"}
	}
	held, err := lockFolder(dataDir)
	var refusal *Refusal
	if errors.As(err, &refusal) && refusal.Code == ExitFolderLocked {
		refusal.Do = "stop it first, and start it again afterwards; pods keep running in the meantime"
	}
	if err != nil {
		return false, err
	}
	defer held.release()
	if finish {
		changed, err = pki.FinishAll(PKI(dataDir))
	} else {
		changed, err = true, pki.RotateAll(PKI(dataDir))
	}
	if err != nil || !changed {
		return false, err
	}
	return true, rewriteKubeconfig(dataDir)
}

// rewriteKubeconfig gives the administrator a certificate of the CA there is now. A folder without a kubeconfig is an
// agent's, or its server has not run yet.
func rewriteKubeconfig(dataDir string) error {
	if _, err := os.Stat(datadir.Kubeconfig(dataDir)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	url, err := ServerURL(dataDir)
	if err != nil {
		return err
	}
	ca, err := pki.Load(PKI(dataDir))
	if err != nil {
		return err
	}
	text, err := ca.Kubeconfig(url, "wherry-admin", []string{user.SystemPrivilegedGroup}, pki.ServingLifetime)
	if err != nil {
		return err
	}
	return writeFile(datadir.Kubeconfig(dataDir), text, 0o600)
}
