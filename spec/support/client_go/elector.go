// A peer of the tests: client-go's own leader election, which runs a command while it leads.
// elector [flags] -- COMMAND...; each event is a line on standard output.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "elector:", err)
		os.Exit(1)
	}
}

func main() {
	var config rest.Config
	var ca, name, namespace, identity string
	var duration, deadline, retry time.Duration
	flag.StringVar(&config.Host, "server", "", "the API server's URL")
	flag.StringVar(&config.BearerToken, "token", "", "the token to log in with")
	flag.StringVar(&ca, "ca", "", "the authority's certificate; without it none is checked")
	flag.StringVar(&namespace, "namespace", "default", "the Lease's namespace")
	flag.StringVar(&name, "name", "", "the Lease's name")
	flag.StringVar(&identity, "id", "", "who this is")
	flag.DurationVar(&duration, "duration", 15*time.Second, "LeaseDuration")
	flag.DurationVar(&deadline, "deadline", 10*time.Second, "RenewDeadline")
	flag.DurationVar(&retry, "retry", 2*time.Second, "RetryPeriod")
	flag.Parse()
	config.TLSClientConfig.CAFile = ca
	config.TLSClientConfig.Insecure = ca == ""

	client, err := clientset.NewForConfig(&config)
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)

	var command *exec.Cmd
	end := func() {
		if command != nil {
			command.Process.Kill()
			command.Wait()
			command = nil
		}
	}
	started := make(chan bool, 1)
	go func() {
		<-stop
		select {
		case <-started:
			end() // the work ends before the lease is given back
		default:
		}
		cancel()
	}()
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: name, Namespace: namespace},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		ReleaseOnCancel: true,
		LeaseDuration:   duration,
		RenewDeadline:   deadline,
		RetryPeriod:     retry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				fmt.Println("leads")
				if flag.NArg() > 0 {
					command = exec.Command(flag.Arg(0), flag.Args()[1:]...)
					command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
					must(command.Start())
				}
				started <- true
			},
			OnStoppedLeading: func() {
				end()
				fmt.Println("stopped")
			},
			OnNewLeader: func(leader string) { fmt.Println("leader", leader) },
		},
	})
}
