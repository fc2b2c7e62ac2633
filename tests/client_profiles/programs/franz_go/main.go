// One franz-go consumer with the library's own defaults, until SIGTERM.
//
//	consume BOOTSTRAP GROUP TOPIC CLIENT_ID
//
// WORK_MS in the environment: how long the application works on each record.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(os.Args[1]),
		kgo.ConsumerGroup(os.Args[2]),
		kgo.ConsumeTopics(os.Args[3]),
		kgo.ClientID(os.Args[4]),
	)
	if err != nil {
		log.Fatal(err)
	}
	workMs, _ := strconv.Atoi(os.Getenv("WORK_MS"))
	for ended.Err() == nil {
		records := client.PollFetches(ended).NumRecords()
		time.Sleep(time.Duration(workMs*records) * time.Millisecond)
	}
	client.Close()
}
