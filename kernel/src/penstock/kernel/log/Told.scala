package penstock.kernel.log

/** What a frame says of a topic's partitions and producers. */
sealed trait Told {
  def frame: Long

  /** Takes it into the pace of the partitions, or of the producers. */
  def to(pace: Pace, by: String): Unit
}

final class Brought(val frame: Long, block: Block, producer: String) extends Told {
  override def to(pace: Pace, by: String): Unit =
    if (by == By.Partition) pace.bring(block.partition.toString, block.top)
    else if (producer != null) pace.bring(producer, block.most)
}

final class Said(val frame: Long, said: Punctuation) extends Told {
  override def to(pace: Pace, by: String): Unit =
    if (by == By.Partition) said.partition.filter(_ => said.says == Punctuation.Idle).foreach(each => pace.rest(each.toString, said.scope))
    else said.producer.foreach { producer =>
      said.says match {
        case Punctuation.Idle => pace.rest(producer, said.scope)
        case Punctuation.Joins => pace.join(producer, said.until)
        case Punctuation.Leaves => pace.leave(producer)
        case _ => pace.announce(producer, said.until)
      }
    }
}
