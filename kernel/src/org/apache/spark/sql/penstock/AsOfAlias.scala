package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.trees.Origin

/** `a ASOF JOIN b ON ...` is no as-of join for Spark's parser but a join of `a`, named ASOF: the MATCH_CONDITION is missing. */
object AsOfAlias {
  private val Named = "(?is).*\\sAS\\s+\\S+".r
  private val Joined = "(?is)\\s*(INNER\\s+)?JOIN\\b.*".r

  /** Whether the relation that begins at the origin was given the name without AS, and JOIN follows. */
  def isMeant(origin: Origin): Boolean = {
    val found = for (text <- origin.sqlText; start <- origin.startIndex; stop <- origin.stopIndex)
      yield !Named.matches(text.substring(start, stop + 1)) && Joined.matches(text.substring(stop + 1))
    found.getOrElse(false)
  }
}
