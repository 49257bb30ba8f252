// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	componentcli "k8s.io/component-base/cli"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/server"
)

func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl COMMAND",
		Short: "kubectl, connected to the server of this machine",
		Long: `kubectl, whole and unchanged, without installing it.

Without --kubeconfig and KUBECONFIG it talks to the server of this machine: the kubeconfig in its data folder
(/var/lib/wherry, or $WHERRY_DATA_DIR).`,
		Example: `  wherry kubectl get pods -o wide
  wherry kubectl exec -it web -- sh
  wherry kubectl apply -f pod.yaml`,
		DisableFlagParsing: true, // all flags are kubectl's
		RunE: func(_ *cobra.Command, args []string) error {
			return silent(kubectl(args))
		},
	}
}

func silent(code int) error {
	if code == 0 {
		return nil
	}
	return &Exit{Code: code}
}

// kubectl runs kubectl with its arguments. It ends the process by itself on most errors, as kubectl does.
func kubectl(args []string) int {
	if err := chooseKubeconfig(args); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return exitFailure
	}
	os.Args = append([]string{"kubectl"}, args...) // kubectl and its completion look there
	if err := componentcli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		cmdutil.CheckErr(err)
	}
	return 0
}

// chooseKubeconfig points kubectl at this machine's server when the user points nowhere.
func chooseKubeconfig(args []string) error {
	if os.Getenv("KUBECONFIG") != "" || slices.ContainsFunc(args, func(a string) bool {
		return a == "--kubeconfig" || strings.HasPrefix(a, "--kubeconfig=") || a == "--server" || strings.HasPrefix(a, "--server=") || a == "-s"
	}) {
		return nil
	}
	path := server.Kubeconfig(ask.DataDir())
	f, err := os.Open(path)
	switch {
	case err == nil:
		f.Close()
		return os.Setenv("KUBECONFIG", path)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("only root may read %s: run with sudo, or copy it and set KUBECONFIG", path)
	}
	if home, err := os.UserHomeDir(); err == nil {
		if _, err := os.Stat(filepath.Join(home, ".kube", "config")); err == nil {
			return nil
		}
	}
	if !needsServer(args) {
		return nil
	}
	return fmt.Errorf("no server has been started on this machine (there is no %s): start one with sudo wherry server, or set KUBECONFIG", path)
}

// needsServer is false for what kubectl does without a server.
func needsServer(args []string) bool {
	for _, a := range args {
		switch a {
		case "help", "--help", "-h", "completion", "config", "options", "plugin", "kustomize", "__complete", "__completeNoDesc", "--client", "--client=true":
			return false
		}
	}
	return len(args) > 0
}
